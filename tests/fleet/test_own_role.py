"""A user's own role beside sparkwright's roles, exactly as in docs/writing-a-role.md."""

import json
import re
import shutil
from collections.abc import Iterator

import pytest

from tests.fleet.site import GOOD, ROOT, Site, ssh, until

PAGE = (ROOT / "docs/writing-a-role.md").read_text()
LOCK = "/opt/sparkwright/state/lock.json"
LAST = "/opt/sparkwright/state/lock-last.json"
CHANGE = "Hello | Write the message of the day"
BOB = {"token": "b0b", "by": "bob@desk", "machine": "another", "pid": 7, "since": 1.5e9}


def _block(file: str) -> str:
    """File that the page shows."""
    (text,) = re.findall(rf"```python\n# {re.escape(file)}\n(.*?)```", PAGE, re.S)
    return str(text)


@pytest.fixture
def hello(converged: Site) -> Iterator[Site]:
    """The site with the page's role in it."""
    folder = converged.folder / "roles/hello"
    folder.mkdir()
    (folder / "__init__.py").write_text(_block("roles/hello/__init__.py"))
    with (converged.folder / "group_data/all.py").open("a") as data:
        data.write(_block("group_data/all.py"))
    with (converged.folder / "deploy.py").open("a") as deploy:
        deploy.write("from roles.hello import hello\nhello()\n")
    for host in GOOD:
        ssh(host, "sudo rm -f /etc/motd /etc/sparkwright-note")
    yield converged
    shutil.rmtree(folder)
    converged.restore("deploy.py")


def test_a_users_role_appears_in_the_report_and_skips_a_refused_host(hello: Site) -> None:
    dry = hello.run("--dry", "--diff")
    assert "+ Lab: NVIDIA GB10, driver 580.95.05, serves qwen36" in dry.output
    assert dry.changed == set()
    ssh("spark-1", "test ! -e /etc/motd")

    run = hello.deploy(refused={"hopper-1"})
    assert {host: run.host(host)["changes"] for host in GOOD} == {host: [CHANGE] for host in GOOD}
    assert ssh("rtx-1", "cat /etc/motd") == (
        "Lab: NVIDIA GeForce RTX 5090, driver 580.95.05, serves qwen36"
    )
    ssh("hopper-1", "test ! -e /etc/motd || ! grep Lab: /etc/motd")
    for host in GOOD:
        ssh(host, f"sudo test ! -e {LOCK}")

    before = [ssh(host, f"sudo stat -c %y {LAST}") for host in GOOD]
    assert hello.deploy(refused={"hopper-1"}).changed == set()
    assert [ssh(host, f"sudo stat -c %y {LAST}") for host in GOOD] == before  # no run took a lock


def test_a_users_role_runs_under_the_lock(hello: Site) -> None:
    """Another run begins while only the role has work to do."""
    ssh("spark-1", f"echo '{json.dumps(BOB)}' | sudo tee {LOCK}")
    try:
        run = hello.run("--yes")
    finally:
        ssh("spark-1", f"sudo rm {LOCK}")
    assert run.refused == {"spark-1", "hopper-1"}, run.output
    assert "bob@desk" in run.host("spark-1")["refused"]
    ssh("spark-1", "test ! -e /etc/motd")
    ssh("spark-2", "test -e /etc/motd")


def test_a_users_operation_reports_its_change(hello: Site) -> None:
    role = hello.folder / "roles/hello"
    (role / "operations.py").write_text(_block("roles/hello/operations.py"))
    with (hello.folder / "deploy.py").open("a") as deploy:
        deploy.write(
            "from roles.hello.operations import note\nnote(name='Note', text='all is well')\n"
        )
    dry = hello.run("--dry", "--limit", "spark-2")
    assert re.search(r"\[spark-2\] +would write /etc/sparkwright-note", dry.output)
    run = hello.deploy("--limit", "spark-2")
    assert run.host("spark-2")["changes"] == [
        CHANGE, "wrote /etc/sparkwright-note", "the note is 'all is well'"
    ]  # fmt: skip
    assert ssh("spark-2", "cat /etc/sparkwright-note") == "all is well"
    assert hello.deploy("--limit", "spark-2").changed == set()


def test_a_failed_role_is_reported(hello: Site) -> None:
    with (hello.folder / "deploy.py").open("a") as deploy:
        deploy.write(
            "from pyinfra.context import host\nfrom pyinfra.operations import server\n"
            "server.shell(name='Break', commands=[f'test {host.name} != rtx-1'])\n"
        )
    run = hello.run("--yes")
    assert run.code == 1
    assert run.refused == {"rtx-1", "hopper-1"}
    assert run.host("rtx-1")["refused"] == "Break failed"
    assert "NOT as planned: rtx-1, hopper-1" in run.output
    assert run.host("spark-1")["changes"] == [CHANGE, "Break"]


def test_sparkwright_observes_a_users_earlier_change(hello: Site) -> None:
    """pyinfra collects a host's facts again after the user's operation, in the same run."""
    text = (hello.folder / "deploy.py").read_text()
    theirs = (
        "from pyinfra.operations import server\n"
        "server.shell(name='Stop', commands=['systemctl disable --now sparkwright-watch.timer'],"
        " _sudo=True)\n"
    )
    (hello.folder / "deploy.py").write_text(text.replace("\nwatch()\n", f"\n{theirs}watch()\n"))
    run = hello.deploy("--limit", "spark-1")
    assert run.host("spark-1")["changes"][0] == "Stop"
    assert ssh("spark-1", "systemctl is-enabled sparkwright-watch.timer") == "enabled"
    until(lambda: "active" in ssh("spark-1", "systemctl is-active sparkwright-watch.timer"), "it")
