"""The hub's Xet storage as the way that weights come."""

from typing import Any

import pytest

from lab.hub import access
from lab.hub.store import File
from tests.host.fetch.conftest import Fetch, LabHub


def _largest(lab: LabHub) -> tuple[str, File]:
    """The repository with the largest file, and that file."""
    result = {
        name: max(repository.commits[-1].files, key=lambda file: file.size)
        for name, repository in lab.repositories.items()
    }
    name = max(result, key=lambda key: result[key].size)
    return name, result[name]


def _request(lab: LabHub, fetch: Fetch, name: str, **changes: Any) -> dict[str, Any]:
    token = fetch.root / "token"
    token.write_text(access.MEMBER_TOKEN, encoding="utf-8")
    expected = {"token_file": str(token), "allow_token_over_http": True, "downloader": "xet"}
    return lab.request(fetch, name, **{**expected, **changes})


@pytest.mark.parametrize(
    "fault",
    [
        {"match": "/api/models/*/xet-read-token/*", "status": 404},
        {"match": "/xet/v1/*", "status": 403},
        {"match": "/xet/xorbs/*/1", "drop_after": 100_000},
    ],
)
def test_what_it_does_not_give_comes_by_plain_http(
    lab: LabHub, fetch: Fetch, fault: dict[str, Any]
) -> None:
    name, file = _largest(lab)
    lab.fault(**fault)
    output = fetch.complete(
        f"{file.path}: Xet ended (", "fetching the rest by plain HTTP", **_request(lab, fetch, name)
    )
    assert "Signature" not in output


def test_it_is_next_where_hf_transfer_can_not_be_had(lab: LabHub, fetch: Fetch) -> None:
    name, file = _largest(lab)
    alone = fetch.root / "runtime"
    alone.mkdir()
    (alone / "hf_xet").symlink_to(fetch.runtime / "hf_xet")
    fetch.runtime = alone
    output = fetch.complete(**_request(lab, fetch, name, downloader="hf_transfer"))
    ended = "hf_transfer ended (No module named 'hf_transfer'); fetching the rest by Xet"
    assert f"{file.path}: {ended}" in output
    assert "/s) by Xet" in output.splitlines()[-1]


def test_a_limit_is_kept_by_plain_http(lab: LabHub, fetch: Fetch) -> None:
    name, _ = _largest(lab)
    fetch.complete(**_request(lab, fetch, name, limit=100e6))
    assert "xet" not in lab.counters()["requests"]
