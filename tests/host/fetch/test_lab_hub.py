"""The fetch program against the hub of the lab."""

from __future__ import annotations

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
        code, said = fetch.here(**changes)
        assert code == 0, said
        assert "hf_transfer ended" not in said
        found = {
            path.relative_to(lab.directory(fetch, name)).as_posix(): path.stat().st_size
            for path in lab.directory(fetch, name).rglob("*")
            if path.is_file() and not path.name.startswith(".sparkwright")
        }
        assert found == {f.path: f.size for f in lab.repositories[name].commits[-1].files}
    assert lab.counters()["tokens_at_cdn"] == 0


def test_faults(lab: LabHub, fetch: Fetch) -> None:
    name = max(
        lab.repositories,
        key=lambda key: sum(f.size for f in lab.repositories[key].commits[-1].files),
    )
    files = sorted(lab.repositories[name].commits[-1].files, key=lambda file: -file.size)
    shard, other = files[0].path, files[1].path
    lab.fault(match="/api/*", status=503, times=1)
    lab.fault(match="*/resolve/*", status=500, times=2)
    lab.fault(match=f"/cdn/*{other}", method="GET", drop_after=100_000, times=3)
    lab.fault(match=f"/cdn/*{shard}", method="GET", corrupt_at=files[0].size // 2, times=1)
    lab.fault(match="*/resolve/*", method="HEAD", etag="wrong", times=1)
    code, said = fetch.here(**lab.request(fetch, name))
    assert code == 0, said
    assert f"{shard}: expected sha256" in said
    code, said = fetch.here(**lab.request(fetch, name))
    assert said.startswith("already complete")


def test_truncated_for_good(lab: LabHub, fetch: Fetch) -> None:
    name = next(iter(lab.repositories))
    lab.fault(match=f"/cdn/*{_largest(lab.repositories[name])}", truncate=100_000)
    code, said = fetch.here(**lab.request(fetch, name))
    assert code == 1
    assert "serves another file than the locked one" in said.splitlines()[-1]
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
    code, said = fetch.here(**lab.request(fetch, name, **changes))
    assert code == 1
    assert message in said.splitlines()[-1]
