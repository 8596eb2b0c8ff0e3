"""Tests of the page with its section on speed need the extra `bench`."""

from importlib.util import find_spec

if find_spec("sparkwright.extras.bench") is None:
    collect_ignore_glob = ["test_*.py"]
