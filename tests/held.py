"""Holding the lab for a session of tests; the session ends if another session holds the lab."""

import contextlib
from collections.abc import Iterator

import pytest

from lab.holding import LabIsHeldError, held


@contextlib.contextmanager
def held_for_tests() -> Iterator[None]:
    """Hold the lab, or end the session at once, with one message instead of one message for each
    test.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held("tests"))
        except LabIsHeldError as error:
            pytest.exit(str(error), returncode=1)
        yield
