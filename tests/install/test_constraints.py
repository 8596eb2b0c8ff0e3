"""Packages of users and of development are pinned in separate files, by hash, without an index."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sparkwright import __version__
from tests.unit.builders import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def _pins(name: str) -> dict[str, str]:
    """Version by package; the file has only pins with hashes, and comments."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / name).read_text(), flags=re.MULTILINE)
    assert _PIN.sub("", text).strip() == ""
    return {canonicalize_name(match[1]): match[2] for match in _PIN.finditer(text)}


@pytest.mark.parametrize(
    ("requirements", "files"),
    [
        (PROJECT["dependencies"], ["constraints.txt"]),
        (PROJECT["optional-dependencies"]["dev"], ["constraints.txt", "constraints-dev.txt"]),
    ],
)
def test_every_requirement_is_pinned(requirements: list[str], files: list[str]) -> None:
    pins = {name: version for file in files for name, version in _pins(file).items()}
    for requirement in map(Requirement, requirements):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("other", ["constraints-dev.txt", "constraints-clients.txt"])
def test_no_package_is_pinned_twice(other: str) -> None:
    assert not _pins("constraints.txt").keys() & _pins(other).keys()


def test_a_users_install_has_no_development_tools() -> None:
    tools = {"hatchling", "hypothesis", "import-linter", "mypy", "pytest", "ruff", "starlette"}
    assert not tools & _pins("constraints.txt").keys()
    assert tools <= _pins("constraints-dev.txt").keys()


def test_the_load_generators_pins_can_be_read() -> None:
    assert "aiperf" in _pins("constraints-bench.txt")


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == __version__
    assert headings == sorted(headings, key=lambda text: text.split("."), reverse=True)
