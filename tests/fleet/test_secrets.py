"""Secrets reach no argument list, log, diff, readable file or record, and are deleted after use."""

import pytest

from lab.hub.access import MEMBER_TOKEN
from tests.fleet.downloads import HOST, fetch, parts, whole
from tests.fleet.site import GOOD, Site, container, hub, inside, ssh, until
from tests.fleet.test_fetch_faults import SHARD


def everywhere(host: str, text: str) -> list[str]:
    """Files of a host, including Docker's files, that contain this text on its disks or in its
    memory.
    """
    beyond = " ".join(f"--exclude-dir={name}" for name in ("proc", "sys", "dev"))
    lines = inside(host, "sh", "-c", f"grep -rlsF {beyond} -e '{text}' / || true").splitlines()
    assert text not in inside(host, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").replace(
        f"-e {text}", ""
    )
    assert text not in inside(host, "journalctl", "--no-pager", "-o", "cat")
    return lines


def test_only_the_keys_own_files_contain_the_key(converged: Site) -> None:
    key = converged.key
    converged.edit("group_data/sparks.py", '"port": 8000', '"port": 8002')
    run = converged.run("--yes", "-vvv", "--diff", "--debug")
    assert run.refused == {"hopper-1"}, run.output
    assert key not in run.output
    records = [p for p in (converged.folder / ".sparkwright").iterdir() if p.is_file()]
    assert [p.name for p in records if key in p.read_text()] == ["api_key"]
    for host in GOOD:
        # A host has the clients' keys only as hashes, and has a separate key for its engine.
        assert everywhere(host, key) == []
        secrets = "/opt/sparkwright/services/qwen36/secrets.env"
        engine = inside(host, "cat", secrets).partition("=")[2].strip()
        assert sorted(everywhere(host, engine)) == ["/opt/sparkwright/gateway/engine.map", secrets]
        assert engine not in run.output


def test_a_changed_key_is_rolled_out(converged: Site) -> None:
    key = "a-key-of-the-users-own-0123456789"
    before = container("spark-1")
    run = converged.run("--yes", "--limit", "spark-1", SPARKWRIGHT_API_KEY=key)
    assert run.code == 0, run.output
    assert run.host("spark-1")["changes"] == ["wrote 1 files of the proxy"]
    assert container("spark-1") == before
    ask = (
        "curl -s -o /dev/null -w '%{http_code}' localhost:8000/v1/models -H 'Authorization: Bearer"
    )
    assert ssh("spark-1", f"{ask} {key}'") == "200"
    assert ssh("spark-1", f"{ask} {converged.key}'") == "401"


@pytest.fixture
def with_token(empty: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A host without models, and a run that has a token for the hub."""
    monkeypatch.setenv("HF_TOKEN", MEMBER_TOKEN)
    return empty


def test_a_hub_token_is_deleted_after_success_and_failure(with_token: Site) -> None:
    fetch(with_token)
    assert whole()
    assert everywhere(HOST, MEMBER_TOKEN) == []
    ssh(HOST, "sudo rm -rf /opt/models/*")
    hub("POST", order={"match": SHARD, "corrupt_at": 1_000_000})
    fetch(with_token, code=1)
    assert everywhere(HOST, MEMBER_TOKEN) == []


def test_a_hub_token_is_deleted_when_its_job_is_killed(with_token: Site) -> None:
    hub("POST", order={"match": SHARD, "sleep": 30.0, "times": 3})
    run = with_token.start("--limit", HOST, deploy="fetch-deploy.py")
    try:
        until(lambda: parts() > 1_000_000, "it fetches")
        # The job holds the token in memory, where the later search would find it.
        assert MEMBER_TOKEN in inside(
            HOST, "sh", "-c", "cat /run/credentials/sparkwright-fetch-*/*"
        )
        inside(HOST, "systemctl", "kill", "--signal=KILL", "sparkwright-fetch-*.service")
        run.wait(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert everywhere(HOST, MEMBER_TOKEN) == []
    hub("DELETE")
    fetch(with_token)
    assert whole()
