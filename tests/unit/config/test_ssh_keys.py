"""Files of private keys: an unusable key is reported with a remedy."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.inventory import HostInput
from sparkwright.config.ssh_keys import SSH_KEY, fault, is_encrypted
from sparkwright.site.fleet import plan_fleet
from tests.unit.builders import SPARK


def key(folder: Path, *arguments: str, phrase: str = "") -> str:
    """A key that ssh-keygen has made."""
    path = str(folder / "id")
    subprocess.run(["ssh-keygen", "-q", "-N", phrase, "-f", path, *arguments], check=True)
    return path


@pytest.mark.parametrize("phrase", ["", "open sesame"])
@pytest.mark.parametrize(
    "answer", [("-t", "ed25519"), ("-t", "ecdsa"), ("-t", "rsa", "-m", "PEM")], ids=" ".join
)
def test_a_private_key_is_accepted(tmp_path: Path, answer: Any, phrase: str) -> None:
    path = key(tmp_path, *answer, phrase=phrase)
    assert fault(path) is None
    assert is_encrypted(path) is bool(phrase)


def test_a_file_without_a_private_key_is_refused(tmp_path: Path) -> None:
    path = key(tmp_path, "-t", "ed25519")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(bytes(range(256)) * 300)
    problems = {
        f"{path}.pub": f"name the private one ('{path}' if that is its path)",
        str(garbage): "name one (ssh-keygen makes it)",
        str(tmp_path): "it must be a file of yours: chmod 600",
        f"{tmp_path}/none": "name an existing private key",
        "a\0b": "it must be a file of yours",
    }
    for name, remedy in problems.items():
        result = fault(name)
        assert result is not None
        assert result[1].startswith(remedy)


def test_an_unreadable_key_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert fault(str(tmp_path)) == (
        f"'{tmp_path}' can't be read: Permission denied",
        "it must be a file of yours: chmod 600, or drop ssh_key to use your SSH agent and "
        "ssh_config",
    )


def test_an_unusable_key_does_not_stop_the_plan(tmp_path: Path) -> None:
    data = {"services": SPARK, "ssh_key": f"{tmp_path}/none"}
    fleet = plan_fleet([HostInput("spark-1", data, lambda _: "inventory/lab.py")])
    assert fleet.problems == ()
    (result,) = [
        violation for violation in fleet.hosts["spark-1"].violations if violation.id == SSH_KEY
    ]
    assert result.stops
    assert str(result.subject) == "spark-1: inventory/lab.py: ssh_key"
