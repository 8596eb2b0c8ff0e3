"""The API key reaches no argument list, log, diff, readable file or record."""

from __future__ import annotations

from tests.fleet.site import GOOD, Site, inside, ssh


def test_the_key_is_nowhere_but_in_its_files(converged: Site) -> None:
    key = converged.key
    converged.edit("group_data/sparks.py", '"port": 8000', '"port": 8002')
    run = converged.run("--yes", "-vvv", "--diff", "--debug")
    assert run.refused == {"hopper-1"}, run.output
    assert key not in run.output
    records = [p for p in (converged.folder / ".sparkwright").iterdir() if p.is_file()]
    assert [p.name for p in records if key in p.read_text()] == ["api_key"]
    for host in GOOD:
        assert key not in inside(host, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert key not in inside(host, "journalctl", "--no-pager", "-o", "cat")
        found = ssh(host, f"sudo grep -rlF -e '{key}' /opt /etc /tmp /var/tmp /home || true")
        assert found == "/opt/sparkwright/services/qwen36/secrets.env"


def test_a_changed_key_is_rolled_out(converged: Site) -> None:
    key = "a-key-of-the-users-own-0123456789"
    run = converged.run("--yes", "--limit", "spark-1", SPARKWRIGHT_API_KEY=key)
    assert run.code == 0, run.output
    assert run.host("spark-1")["changes"][0] == "service qwen36: API key, restart"
    ask = (
        "curl -s -o /dev/null -w '%{http_code}' localhost:8000/v1/models -H 'Authorization: Bearer"
    )
    assert ssh("spark-1", f"{ask} {key}'") == "200"
    assert ssh("spark-1", f"{ask} {converged.key}'") == "401"
