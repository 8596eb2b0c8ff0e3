"""Parts of the benchmarks that need no fleet. Nothing here is timed."""

import json
import runpy
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import names, relay, running
from benchmarks.running import Checkout, Cost


def test_the_line_carries_all_bytes_in_order_both_ways_and_the_end() -> None:
    sent = bytes(range(256)) * 4096
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer_with_all, args=(server,), daemon=True).start()
        with _connected(server.getsockname()) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                assert answer.read() == sent


def test_the_line_ends_with_a_host_that_refuses_and_with_its_block() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    with _connected(address) as connection:
        assert connection.recv(1) == b""
        far = connection.getpeername()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(far, timeout=30)


def test_only_a_run_that_changes_nothing_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [["Unit"], []]
    _pretend(monkeypatch, tmp_path, changes)
    assert Checkout(tmp_path).deploy(Path("inventory.py")).seconds == 2
    assert changes == []
    changes += [["Unit"]] * running.TRIES
    with pytest.raises(SystemExit, match=r"still changes something: .*Unit"):
        Checkout(tmp_path).deploy(Path("inventory.py"))


def test_names_are_spread_over_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "WORK", tmp_path)
    groups = runpy.run_path(str(names.many_names(8)))
    assert [name for name, _ in groups["sparks"]] == [
        "spark-1-001", "spark-2-002", "spark-1-004", "spark-2-005", "spark-1-007", "spark-2-008",
    ]  # fmt: skip
    assert [name for name, _ in groups["rtx50"]] == ["rtx-1-003", "rtx-1-006"]
    addresses = {data["ssh_hostname"] for _, data in groups["sparks"]}
    assert addresses == {"10.213.77.11", "10.213.77.12"}


def test_each_more_is_what_the_larger_inventory_takes_more() -> None:
    first, *rows = names.table({8: Cost(2, 1.0, 80), 32: Cost(4, 2.2, 90)})
    assert "for each more" in first
    assert [row.split() for row in rows] == [
        ["8", "1.00", "s", "0.125", "s", "-", "80", "MB", "2.0", "s"],
        ["32", "2.20", "s", "0.069", "s", "0.050", "s", "90", "MB", "4.0", "s"],
    ]


@contextmanager
def _connected(address: tuple[str, int]) -> Iterator[socket.socket]:
    """A connection over the line."""
    with (
        relay.line(*address, round_trip=0.002) as far,
        socket.create_connection(("127.0.0.1", far), timeout=30) as connection,
    ):
        yield connection


def _answer_with_all(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        taken = b"".join(iter(lambda: connection.recv(65536), b""))
        connection.sendall(taken)


def _pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, changes: list[list[str]]) -> None:
    """Runs that change this, one after the other, and take 1, 2, 3 ... seconds."""
    record = folder / ".sparkwright/last-run.json"
    record.parent.mkdir()
    number = 0

    def run(command: Sequence[str], environment: Mapping[str, str], where: Path) -> Cost:
        nonlocal number
        number += 1
        record.write_text(json.dumps({"hosts": [{"host": "spark-1", "changes": changes.pop(0)}]}))
        return Cost(number, 0, 0)

    monkeypatch.setattr(running, "run", run)
