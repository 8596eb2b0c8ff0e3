"""A service that sleeps: what its clients are told, and who of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host.lib import exclusive, files
from sparkwright.host.lib.exclusive import Group, Groups
from sparkwright.host.proxy import place as proxy_place
from tests.host.exclusive.waking import declare
from tests.host.proxy.backend import Backend
from tests.host.proxy.haproxy import RunningProxy, opened, proxies_of, replica, until

CHAT = "/v1/chat/completions"


@pytest.fixture
def evening(folder: Path, first: Backend) -> Iterator[RunningProxy]:
    """``coder`` and ``llm`` are of one group; ``coder`` runs."""
    proxies = replace(proxies_of(folder, (replica(first),)), home=f"{folder}/gateway")
    (own,) = proxies.proxies
    proxies = replace(proxies, proxies=(replace(own, exclusive="evening", engine_key=True),))
    groups = Groups({"evening": Group(("coder", "llm"))}, admin=proxies.admin_socket)
    declare(folder, groups)
    (folder / "gateway").mkdir()
    assert proxies.asleep == str(folder / "gateway/asleep.map")
    proxy_place.write_sleeping(Path(proxies.asleep))
    with opened(proxies) as proxy:
        proxy.until_status("one", "UP")
        yield proxy


def _activate(folder: Path, service: str) -> None:
    exclusive.activate(folder / "state", {"evening": service}, "ann", "")
    proxy_place.tell_sleeping(folder / "state")


def test_it_says_in_openais_shape_which_one_runs_and_when_to_ask_again(
    evening: RunningProxy, first: Backend
) -> None:
    for answer in (evening.post(CHAT), evening.get("/v1/models")):
        assert (answer.status, answer.headers["retry-after"]) == (503, "60")
        assert answer.headers["content-type"] == "application/json"
        assert answer.data["error"] == {
            "message": "llm sleeps: of the group evening coder runs.",
            "type": "server_error", "code": 503, "running": "coder",
        }  # fmt: skip
    assert first.seen == []


def test_who_has_no_key_is_not_told(evening: RunningProxy) -> None:
    answer = evening.post(CHAT, key=None)
    assert (answer.status, b"coder" in answer.body) == (401, False)


def test_one_that_is_activated_is_reached_at_once_and_without_a_reload(
    evening: RunningProxy, folder: Path
) -> None:
    workers = evening.workers()
    _activate(folder, "llm")
    assert evening.post(CHAT).status == 200
    _activate(folder, "coder")
    assert evening.post(CHAT).status == 503
    assert evening.workers() == workers


def test_a_reload_and_a_start_know_it_too(evening: RunningProxy, folder: Path) -> None:
    _activate(folder, "llm")
    evening.reload()
    assert evening.post(CHAT).status == 200
    assert (folder / "gateway/asleep.map").read_text() == "coder llm\n"


def test_a_request_that_runs_is_not_cut_off_when_its_service_is_put_to_sleep(
    evening: RunningProxy, folder: Path, first: Backend
) -> None:
    _activate(folder, "llm")
    answer = evening.send_later(CHAT, {"stream": 2})
    until(lambda: first.seen, "the request")
    _activate(folder, "coder")
    first.go.release(2)
    assert answer.result(60).body.count(b"data:") == 2


def test_a_host_without_a_proxy_or_with_one_that_is_stopped_writes_what_it_can(
    folder: Path,
) -> None:
    proxy_place.tell_sleeping(folder / "state")
    files.write(folder / "gateway/asleep.map", "llm coder\n", 0o644)
    proxy_place.tell_sleeping(folder / "state")
    assert (folder / "gateway/asleep.map").read_text() == ""
