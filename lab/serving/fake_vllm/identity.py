"""The identity of this fake: vLLM's version, flavour and built-in fault.

Three files of the image in /etc, each of one line, name the identity; the environment, which tests
and a service's faults use, takes precedence.
"""

import os
from dataclasses import dataclass
from pathlib import Path

VERSION_FILE = Path("/etc/fake-vllm-version")
FLAVOUR_FILE = Path("/etc/fake-vllm-flavour")
FAULT_FILE = Path("/etc/fake-vllm-fault")

DEFAULT_VERSION = "0.24.0"
"""Version of a fake if neither the environment nor a file names a version."""

AEON = "aeon"
"""Flavour with the additions of the AEON build to stock vLLM."""


@dataclass(frozen=True)
class Identity:
    """A fake: vLLM's version, the flavour (`stock` or `aeon`) and the fault (see `faults`)."""

    version: str
    flavour: str
    fault: str


def read_identity() -> Identity:
    """The identity from environment and image; without settings it is stock, without a fault."""
    return Identity(
        version=_setting("FAKE_VLLM_VERSION", VERSION_FILE) or DEFAULT_VERSION,
        flavour=_setting("FAKE_VLLM_FLAVOUR", FLAVOUR_FILE) or "stock",
        fault=_setting("FAKE_VLLM_FAULT", FAULT_FILE),
    )


def _setting(name: str, file: Path) -> str:
    value = os.environ.get(name, "")
    if not value and file.is_file():
        value = file.read_text(encoding="utf-8")
    return value.strip()
