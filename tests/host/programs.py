"""Small programs on a host's path."""

from pathlib import Path


def program(folder: Path, name: str, text: str) -> Path:
    """Write a program, which is a shell script unless its text begins with another ``#!``."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
