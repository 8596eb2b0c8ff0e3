"""The fetch program against the hub of the lab, and its Xet storage."""

from typing import Any

from lab.hub import access
from lab.hub.store import File
from tests.host.fetch.conftest import Fetch, LabHub
from tests.tables import Tables

cases = Tables(__file__)


def _largest(lab: LabHub) -> tuple[str, File]:
    """The repository with the largest file, and that file."""
    result = {
        name: max(repository.commits[-1].files, key=lambda file: file.size)
        for name, repository in lab.repositories.items()
    }
    name = max(result, key=lambda key: result[key].size)
    return name, result[name]


def _request(
    lab: LabHub, fetch: Fetch, name: str, token: str | None = access.MEMBER_TOKEN, **changes: Any
) -> dict[str, Any]:
    """Send a request with or without a token."""
    if token is not None:
        (fetch.root / "token").write_text(token, encoding="utf-8")
        changes |= {"token_file": str(fetch.root / "token"), "allow_token_over_http": True}
    return lab.request(fetch, name, **changes)


def test_a_file_that_stays_truncated_fails_the_fetch(lab: LabHub, fetch: Fetch) -> None:
    name, file = _largest(lab)
    lab.fault(match=f"/cdn/*{file.path}", truncate=100_000)
    fetch.fail("serves another file than the locked one", **_request(lab, fetch, name))
    assert not lab.directory(fetch, name).exists()


@cases("name", "token", "message")
def test_the_hub_refuses_a_wrong_token_and_a_missing_repository(
    lab: LabHub, fetch: Fetch, name: str, token: str | None, message: str
) -> None:
    code, output = fetch.here(**_request(lab, fetch, name, token))
    assert code == 1
    assert message in output.splitlines()[-1]


@cases("fault")
def test_files_outside_xet_are_fetched_by_plain_http(
    lab: LabHub, fetch: Fetch, fault: dict[str, Any]
) -> None:
    name, file = _largest(lab)
    lab.fault(**fault)
    output = fetch.complete(
        f"{file.path}: Xet ended (",
        "fetching the rest by plain HTTP",
        **_request(lab, fetch, name, downloader="xet"),
    )
    assert "Signature" not in output


def test_xet_falls_back_to_plain_http_without_hf_transfer(lab: LabHub, fetch: Fetch) -> None:
    name, file = _largest(lab)
    alone = fetch.root / "runtime"
    alone.mkdir()
    (alone / "hf_xet").symlink_to(fetch.runtime / "hf_xet")
    fetch.runtime = alone
    output = fetch.complete(**_request(lab, fetch, name, downloader="hf_transfer"))
    ended = "hf_transfer ended (No module named 'hf_transfer'); fetching the rest by Xet"
    assert f"{file.path}: {ended}" in output
    assert "/s) by Xet" in output.splitlines()[-1]


def test_plain_http_respects_a_limit(lab: LabHub, fetch: Fetch) -> None:
    name, _ = _largest(lab)
    fetch.complete(**_request(lab, fetch, name, downloader="xet", limit=100e6))
    assert "xet" not in lab.counters()["requests"]
