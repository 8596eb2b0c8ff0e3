"""The fetch program against the hub of the lab."""

from typing import Any

import pytest

from lab.hub import access
from lab.hub.store import Repository
from tests.host.fetch.conftest import Fetch, LabHub


def _largest(repository: Repository) -> str:
    return max(repository.commits[-1].files, key=lambda file: file.size).path


def test_all_repositories(lab: LabHub, fetch: Fetch) -> None:
    token = fetch.root / "token"
    token.write_text(access.MEMBER_TOKEN, encoding="utf-8")
    for name in lab.repositories:
        changes = lab.request(fetch, name, token_file=str(token), allow_token_over_http=True)
        output = fetch.complete(**changes)
        assert "hf_transfer ended" not in output
        result = {
            path.relative_to(lab.directory(fetch, name)).as_posix(): path.stat().st_size
            for path in lab.directory(fetch, name).rglob("*")
            if path.is_file() and not path.name.startswith(".sparkwright")
        }
        assert result == {f.path: f.size for f in lab.repositories[name].commits[-1].files}
    assert lab.counters()["tokens_at_cdn"] == 0


def test_truncated_for_good(lab: LabHub, fetch: Fetch) -> None:
    name = next(iter(lab.repositories))
    lab.fault(match=f"/cdn/*{_largest(lab.repositories[name])}", truncate=100_000)
    fetch.fail("serves another file than the locked one", **lab.request(fetch, name))
    assert not lab.directory(fetch, name).exists()


@pytest.mark.parametrize(
    ("name", "token", "message"),
    [
        ("lab/gated-tiny", None, "is gated and no token was sent"),
        ("lab/gated-tiny", access.STRANGER_TOKEN, "account has no access"),
        ("lab/private-tiny", access.STRANGER_TOKEN, "account has no access to it"),
        ("lab/private-tiny", None, "has no lab/private-tiny"),
        ("lab/open-tiny", "hf_bad", "rejects the token (HTTP 401)"),
    ],
)
def test_refusals(lab: LabHub, fetch: Fetch, name: str, token: str | None, message: str) -> None:
    changes: dict[str, Any] = {}
    if token is not None:
        (fetch.root / "token").write_text(token, encoding="utf-8")
        changes = {"token_file": str(fetch.root / "token"), "allow_token_over_http": True}
    code, output = fetch.here(**lab.request(fetch, name, **changes))
    assert code == 1
    assert message in output.splitlines()[-1]
