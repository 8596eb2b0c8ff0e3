"""Every command ends in time with a known exit code for any input, without traceback or stray file.

The tests try a few hundred inputs; `make test-fuzz` tries 6,000.
"""

import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sparkwright.run  # loaded for `up`, before a test patches sockets  # noqa: F401
from sparkwright.bootstrap.gpu_question import Box
from sparkwright.config import places, python_files
from sparkwright.resolve import credentials
from tests.fuzz import grammars
from tests.fuzz.drawn_site import catalog, run, site
from tests.fuzz.drawn_values import Deep

#: Each of the six tests takes half of the profile's number: 450 inputs, or 6,000.
many = settings(max_examples=settings().max_examples // 2)


@pytest.fixture(scope="module", autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A small catalog, no network, and a short time limit for files that run without end."""

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "CATALOG", catalog(tmp_path_factory.mktemp("fuzz") / "catalog"))
        patch.setattr(python_files, "COMPUTING", 0.2)
        patch.setattr(socket, "getaddrinfo", unknown)
        patch.setattr(socket.socket, "connect", unknown)
        patch.delenv("SPARKWRIGHT_API_KEY", raising=False)
        patch.delenv("HF_TOKEN", raising=False)
        yield


def _run(files: dict[str, str | bytes], *arguments: str, outputs: Iterable[str] = ()) -> None:
    credentials._accounts.cache_clear()
    with TemporaryDirectory(prefix="fuzz-") as folder, site(Path(folder), files) as position:
        run(position, *arguments, outputs=outputs)


@many
@given(data=grammars.inventory)
def test_no_inventory_crashes_check(data: bytes) -> None:
    _run({"inventory/lab.py": data}, "check", "inventory/lab.py")


@many
@given(data=grammars.group_data)
@example(data=f"ssh_paramiko_connect_kwargs = {Deep(3000)!r}".encode())
@example(data=f"ssh_port = {Deep(3000)!r}".encode())
def test_no_group_data_crashes_check(data: bytes) -> None:
    _run({"group_data/all.py": data}, "check", "inventory/lab.py")


@many
@given(data=grammars.entry)
def test_no_catalog_entry_crashes_check(data: bytes) -> None:
    files: dict[str, str | bytes] = {"catalog/mine.yaml": data}
    _run(files, "check", "inventory/lab.py")


@many
@given(data=grammars.lock)
def test_no_lock_crashes_render(data: bytes) -> None:
    _run({"fleet.lock": data}, "render", "inventory/lab.py", "out", outputs=["out"])


@many
@given(arguments=grammars.command_line)
def test_no_command_line_crashes_sparkwright(arguments: tuple[str, ...]) -> None:
    # Every word may name a path; `report` has its own output path.
    named = {part for word in arguments for part in (word, word.rpartition("=")[2]) if part}
    _run({}, *arguments, outputs=[*named, *([".sparkwright"] if "report" in arguments else [])])


@many
@given(arguments=grammars.up, gpu=st.sampled_from(("gb10", "rtx5090", None)))
def test_no_argument_crashes_up(arguments: list[str], gpu: str | None) -> None:
    """Logins to boxes succeed, but the boxes do not answer questions about their state."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparkwright.cli.up.Login.open", lambda _: None)
        patch.setattr("sparkwright.cli.up.gpu_of", lambda name, _: Box(name, gpu, gpu or ""))
        patch.setattr("sparkwright.cli.up.Hosts.ask", lambda *_, **__: SimpleNamespace(answers={}))
        _run({"deploy.py": ""}, "up", *arguments, outputs=[*arguments, ".sparkwright"])
