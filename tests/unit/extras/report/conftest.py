"""Tests of the page with its section on speed need the extra `bench`."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sparkwright.extras.bench") is None:
    collect_ignore = [
        "test_front.py", "test_page.py", "test_report_command.py", "test_stored_results.py",
    ]  # fmt: skip
