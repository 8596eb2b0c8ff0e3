"""The fetch program and its libraries on a host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuntimeRequest:
    """What is installed, whole or not at all.

    Attributes:
        home: directory; nothing is done where it is there.
        digest: sha256 of the tar in the archive, in hex.
        archive: gzipped tar of the libraries, in base64.
        program: path below home -> source.
    """

    home: str
    digest: str
    archive: str
    program: dict[str, str]
