"""Names of boxes in the LAN, from SSH and mDNS, hostile ones too; ``discover`` and ``init``."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.bootstrap.gpu_question import Box
from sparkwright.extras.discover import command as discover_command
from sparkwright.extras.discover import names
from sparkwright.extras.discover.names import Candidate
from sparkwright.findings.user_error import UserError
from tests.unit.cli.answering import exits, run

CONFIG = """\
# mine
Host spark-1 s1
    HostName 192.168.1.21
    User me
Host *.lan !bad
    User me
Host github.com
    IdentityFile ~/.ssh/git
host=rtx
  hostname = "rtx-1.local"
Match host other
    HostName 192.168.1.99
Include more
"""
KNOWN = """\
|1|aGFzaA==|aGFzaA== ssh-ed25519 AAAA
192.168.1.21,spark-1.local ssh-ed25519 AAAA
spark-2.local ssh-ed25519 AAAA
[192.168.1.30]:2222 ssh-ed25519 AAAA
@revoked 192.168.1.66 ssh-ed25519 AAAA
github.com ssh-ed25519 AAAA
torn
"""
ADDRESSES = {
    "192.168.1.21": ["192.168.1.21"], "spark-1.local": ["192.168.1.21"],
    "rtx-1.local": ["192.168.1.23", "fe80::1%eth0"], "spark-2.local": ["fd00::2", "127.0.0.1"],
    "github.com": ["140.82.121.3"],
}  # fmt: skip


def resolve(name: str) -> list[str]:
    return ADDRESSES.get(name, [])


def ssh_files(home: Path, hosts: str, config: str = "") -> Path:
    """A home with SSH's own files."""
    (home / ".ssh").mkdir()
    (home / ".ssh/config").write_text(config)
    (home / ".ssh/known_hosts").write_text(hosts)
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return ssh_files(tmp_path, KNOWN, CONFIG)


def test_each_box_once_by_the_user_s_name_and_nobody_s_server(home: Path) -> None:
    assert names.candidates(home / "empty", resolve, []) == []
    result = names.candidates(home, resolve, [])
    assert [(item.name, item.source) for item in result] == [
        ("spark-1", "ssh_config"), ("rtx", "ssh_config"), ("spark-2.local", "known_hosts")
    ]  # fmt: skip
    assert result[1].addresses == ("192.168.1.23", "fe80::1")
    assert result[2].addresses == ("fd00::2",)


def announcing(monkeypatch: pytest.MonkeyPatch, infos: dict[str, Any]) -> list[str]:
    """Fake the library: these services are announced at once. Returns what was asked for."""
    texts: list[str] = []
    network = SimpleNamespace(
        get_service_info=lambda _, name: infos[name], close=lambda: texts.append("closed")
    )

    def browser(network: Any, type_: str, handlers: list[Any]) -> None:
        texts.append(type_)
        for name in infos:
            handlers[0](zeroconf=network, service_type=type_, name=name, state_change=None)

    fake = SimpleNamespace(Zeroconf=lambda: network, ServiceBrowser=browser)
    monkeypatch.setitem(sys.modules, "zeroconf", fake)
    return texts


def info(server: str | None, *addresses: str) -> Any:
    return SimpleNamespace(server=server, parsed_addresses=lambda: list(addresses))


def test_who_announces_ssh(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = announcing(monkeypatch, {
        "a": info("spark-3.local.", "192.168.1.33"),
        # Announced again under another name (NVIDIA/dgx-spark-playbooks#56).
        "b": info("spark-3-51.local.", "192.168.1.33"),
        "c": info("spark-1.local.", "192.168.1.21"),
        "gone": None,
    })  # fmt: skip
    result = names.candidates(home, resolve, names.announced(0))
    assert Candidate("spark-3.local", ("192.168.1.33",), "mDNS") in result
    assert [item.name for item in result if item.source == "mDNS"] == ["spark-3.local"]
    assert message == ["_ssh._tcp.local.", "closed"]


def test_without_the_library_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    with pytest.raises(UserError, match=r"sparkwright\[discover\]"):
        names.announced(0)


def test_a_name_that_nobody_knows() -> None:
    assert names.resolved("no-such-name.invalid") == []
    assert names.resolved(f"{'a' * 300}.invalid") == []


HOSTILE = (
    "-oProxyCommand=touch /tmp/owned", "spark; touch /tmp/owned", "spark\nsparks = []",
    'a"], "x": ["', "../spark", "", " ", "\x1b[2J", "a" * 400, "$(id)",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_such_a_name_is_no_host(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announcing(monkeypatch, {"x": info(name, "192.168.1.5")})
    assert names.announced(0) == []
    ssh_files(tmp_path, f"{name} ssh-ed25519 AAAA\n", f"Host spark\nHostName {name}\n")

    def resolve(asked: str) -> list[str]:
        assert names.NAME.fullmatch(asked)
        return ["192.168.1.5"]

    assert {item.name for item in names.candidates(tmp_path, resolve, [])} <= {"spark", "sparks"}


def test_nobody_else_s_server_is_logged_in_to(tmp_path: Path) -> None:
    """A name of the LAN's that leads out of it, and one that leads back to this machine."""
    ssh_files(tmp_path, "a ssh-ed25519 A\nb ssh-ed25519 A\n")
    for address in ("8.8.8.8", "2600::1", "127.0.0.1", "::1", "0.0.0.0", "nonsense"):
        assert names.candidates(tmp_path, lambda _, item=address: [item], []) == []  # type: ignore[misc]


def test_a_flood_of_names_is_bounded(tmp_path: Path) -> None:
    ssh_files(tmp_path, "".join(f"h{n} ssh-ed25519 A\n" for n in range(5000)))
    count = iter(range(1 << 20))

    def resolve(_: str) -> list[str]:
        number = next(count)
        return [f"10.0.{number >> 8 & 255}.{number & 255}"]

    assert len(names.candidates(tmp_path, resolve, [])) == names.MOST


BOXES = [
    Box("spark-1", "mDNS", "gb10", "NVIDIA GB10"),
    Box("rtx-1", "ssh_config", "rtx5090", "NVIDIA GeForce RTX 5090"),
    Box("nas", "mDNS", why="\x1b[2JPermission denied"),
]


@pytest.fixture
def lan(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    """Boxes of the LAN, and an empty folder to work in."""

    def boxes_of_lan(*, mdns: bool) -> list[Box]:
        return BOXES if mdns else []

    monkeypatch.setattr(discover_command, "discovered", boxes_of_lan)
    monkeypatch.setattr(names, "discovered", boxes_of_lan)


def test_the_table_and_its_json(lan: None) -> None:
    done = exits(0, "discover")
    assert done.output.splitlines()[1].split() == ["spark-1", "gb10", "NVIDIA", "GB10", "mDNS"]
    assert "\x1b" not in done.output
    assert json.loads(run("discover", "--json").output)[1]["gpu"] == "rtx5090"
    assert run("discover", "--no-mdns").exit_code == 1


def test_init_writes_those_with_a_gpu(lan: None, tmp_path: Path) -> None:
    assert re.search("nas.*left out", exits(0, "init", "lab", "--discover").output, re.S)
    text = (tmp_path / "lab/inventory/lab.py").read_text()
    assert "sparks = ['spark-1']" in text
    assert "rtx50 = ['rtx-1']" in text
    assert "nas" not in text


def test_init_overwrites_nothing_and_asks_nobody_before_it_knows(
    lan: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab/inventory").mkdir(parents=True)
    (tmp_path / "lab/inventory/lab.py").write_text("mine\n")

    def never(**_: bool) -> list[Box]:
        raise AssertionError("the LAN was asked")

    monkeypatch.setattr(names, "discovered", never)
    assert "in the way" in exits(2, "init", "lab", "--discover").output
    assert (tmp_path / "lab/inventory/lab.py").read_text() == "mine\n"
    assert not (tmp_path / "lab/deploy.py").exists()


def test_init_that_finds_none_writes_nothing(lan: None, tmp_path: Path) -> None:
    exits(2, "init", "lab", "--discover", "--no-mdns")
    assert not (tmp_path / "lab").exists()
    arguments = ["init", "lab", "--discover", "--host", "a", "--gpu", "gb10"]
    assert run(*arguments).exit_code == 2
