"""Every host's story, from the hosts themselves."""

from __future__ import annotations

from pathlib import Path

from sparkwright.cli.hosts import ask_hosts
from sparkwright.status import Story, story


def stories(
    inventory: Path, limit: tuple[str, ...], overrides: tuple[str, ...]
) -> dict[str, Story]:
    """By host; those that did not answer are told on standard error and left out."""
    answers = ask_hosts(inventory, limit, overrides, "roles.serving.look.told")
    return {name: story(answer) for name, answer in answers.items()}
