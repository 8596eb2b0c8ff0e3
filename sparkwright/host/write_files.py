"""Writes files on this host, all of them in one execution. Runs as root."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwright.host.lib import systemd


@dataclass(frozen=True)
class FilesRequest:
    """Files as they must be: path -> text and mode."""

    files: dict[str, tuple[str, int]]


def main(request: FilesRequest) -> list[str]:
    """Write them. Returns a description of each that changed."""
    changed = systemd.write_files(request.files)
    return [f"wrote {path}" for path in request.files if path in changed]
