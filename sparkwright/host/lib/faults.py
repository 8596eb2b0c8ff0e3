"""Fault of an answer, with its cause: the result of a failed check."""

import re
import struct

#: Control characters except tabs and line ends, and U+FFFD except at a text's end, where a token
#: budget may cut a character of several bytes.
_NOISE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\ufffd(?!\ufffd{0,2}\Z)")

#: Errors while reading an answer of an unexpected form.
SHAPE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


class Fault(Exception):
    """A check failed; the text has the observation.

    Attributes:
        cause: one of the causes in sparkwright/checks/smoke/checks.yaml.
    """

    def __init__(self, cause: str, observed: str) -> None:
        super().__init__(observed)
        self.cause = cause


def fail_if(failed: object, cause: str, observed: str) -> None:
    """Fail the check if ``failed`` is true: short for ``if failed: raise Fault``."""
    if failed:
        raise Fault(cause, observed)


def fail_if_noise(text: str) -> None:
    """Fail the check if a text has characters that no sound model writes."""
    shown = clip(repr(text))
    noise = _NOISE.search(text)
    fail_if(noise, "noise", f"the answer is noise, as from weights that do not fit: {shown}")


def fail_if_only_marks(text: str, subject: str = "the answer") -> None:
    """Fail the check if a text only repeats token 0, which is `!`: weights are missing."""
    marks = len(text.strip()) >= 4 and not text.strip("! \n")
    fail_if(marks, "marks", f"{subject} is nothing but '!': {clip(text)}")


def clip(text: str | None, length: int = 80) -> str:
    """Return a text in one line, shortened to ``length`` characters."""
    line = " ".join((text or "nothing").split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
