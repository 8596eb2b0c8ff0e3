"""A text file of a Hugging Face repository, in the lock."""

import hashlib

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, config=ConfigDict(extra="forbid", defer_build=True))
class PinnedText:
    """A text file at a commit. The lock holds the file's text, so later runs send no request."""

    commit: str
    sha256: str
    text: str

    def __post_init__(self) -> None:
        """Raise ValueError if the text does not match the hash."""
        if hashlib.sha256(self.text.encode()).hexdigest() != self.sha256:
            raise ValueError("the text does not match its sha256")
