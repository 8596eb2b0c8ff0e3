"""An emergency: a broken plan, no internet, and a host that is off; the remaining commands work."""

import json
from collections.abc import Iterator

import pytest

from lab import machines
from tests.fleet.site import MACHINES, Site, answers, release, ssh

INVENTORY = "inventory/virtual.py"
ONE = (INVENTORY, "--limit", "spark-1")
#: spark-2 is off.
BOTH = (INVENTORY, "--limit", "sparks")
FOLLOWS = "the hosts' own state follows"
LOCK = ".sparkwright/virtual.lock"


@pytest.fixture(scope="module")
def broken(site: Site) -> Iterator[Site]:
    """A fleet that serves, with spark-2 off and a typo in group_data."""
    site.power_on()
    site.repair()
    lock = site.folder / LOCK
    kept = lock.read_text() if lock.is_file() else None
    site.deploy(refused={"hopper-1"})
    (site.folder / "group_data/sparks.py").write_text("services = {\n")
    machines.cut_power(MACHINES["spark-2"])
    yield site
    site.power_on()
    site.repair()
    lock.unlink(missing_ok=True)
    if kept is not None:
        lock.write_text(kept)


def output_of(site: Site, *arguments: str, code: int = 1) -> str:
    """Output of a command, which must report the broken plan in a line, without a traceback."""
    text = site.sparkwright(*arguments, code=code)
    assert text.count("the plan is broken: ") == 1, text
    assert text.count(FOLLOWS) == 1
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("status",), "unknown"),
        (("history",), "good"),
        (("doctor",), "spark-1: "),
        (("models", "list"), "used by qwen36"),
        (("models", "prune", "--dry"), "used by qwen36"),
        (("verify",), "0 wrong"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, tuple) else "",
)
def test_a_running_host_answers_and_an_unreachable_host_is_named(
    broken: Site, arguments: tuple[str, ...], expected: str
) -> None:
    text = output_of(broken, *arguments, *BOTH)
    assert expected in text
    assert "group_data/sparks.py: line 1: not valid Python" in text
    assert "spark-2" in text
    assert "not reached" in text or "Could not connect" in text


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_smoke_requests_real_answers(broken: Site) -> None:
    text = output_of(broken, "smoke", *ONE, code=0)
    (chat,) = [line for line in text.splitlines() if line.split()[2:3] == ["chat"]]
    assert " ok " in chat


def test_a_rollback_needs_no_plan(broken: Site) -> None:
    """The host switches to a kept release, which must pass its gate, and back again."""
    home = "/opt/sparkwright/services/qwen36"
    now = release("spark-1")
    before = "0123456789ab"
    ssh("spark-1", f"sudo cp -a {home}/releases/{now} {home}/releases/{before}")
    ssh("spark-1", f"sudo sed -i s/{now}/{before}/g {home}/releases/{before}/compose.yaml"
        f" {home}/releases/{before}/unit.service"
        f" {home}/releases/{before}/release.json")  # fmt: skip
    output_of(broken, "rollback", *ONE, "--to", before, "--dry", code=0)
    assert release("spark-1") == now
    output_of(broken, "rollback", *ONE, "--to", before, "--yes", code=0)
    assert release("spark-1") == before
    assert answers(broken, "spark-1")
    output_of(broken, "rollback", *ONE, "--to", now, "--yes", code=0)
    assert release("spark-1") == now
    ssh("spark-1", f"sudo rm -r {home}/releases/{before}")


def test_status_works_without_a_registry(broken: Site) -> None:
    broken.reset()
    (broken.folder / LOCK).unlink(missing_ok=True)
    broken.edit(INVENTORY, ":5000", ":9")
    broken.edit(INVENTORY, ":8880", ":9")
    rows = json.loads(broken.call("status", *ONE, "--json").stdout)
    assert rows["spark-1"]["services"]["qwen36"]["health"]["code"] == 200
    assert rows["spark-1"]["plan_known"] is False
    assert "10.213.77.2" in output_of(broken, "status", *ONE)


def test_a_broken_lock_is_reported_and_status_still_works(broken: Site) -> None:
    broken.reset()
    (broken.folder / LOCK).write_text("images: [\n")
    assert LOCK in output_of(broken, "history", *ONE, code=0)


def test_a_missing_ssh_key_fails_only_its_host(broken: Site) -> None:
    broken.reset()
    (broken.folder / LOCK).unlink(missing_ok=True)
    broken.edit(INVENTORY, 'sparks = [_host("spark-1", "10.213.77.11"),', (
        'sparks = [("spark-1", {"ssh_hostname": "10.213.77.11", **_CONNECTION, "ssh_key": "none"}),'
    ))  # fmt: skip
    run = broken.run("--dry", "--limit", "spark-1", "--limit", "rtx-1")
    assert run.code == 1
    assert run.refused == {"spark-1"}
    assert "spark-1: not reached: ssh_key: there is no file 'none'" in run.output


def test_removal_needs_no_plan(broken: Site) -> None:
    """`remove` deletes only files of sparkwright, even if the host's state names other files."""
    broken.reset()
    (broken.folder / "group_data/sparks.py").write_text("services = servces\n")
    ssh("rtx-1", "sudo mkdir -p /home/mine && sudo touch /home/mine/kept"
        " && sudo ln -sfn /home/mine /opt/sparkwright/services/elsewhere"
        " && echo '{\"unmanaged\": [\"--help always\", 5]}'"
        " | sudo tee -a /opt/sparkwright/state/history.jsonl >/dev/null")  # fmt: skip
    arguments = ("remove", INVENTORY, "--limit", "rtx-1", "--yes")
    assert "rtx-1: removed " in output_of(broken, *arguments, code=0)
    assert ssh("rtx-1", "ls /etc/systemd/system | grep -c sparkwright- || true") == "0"
    ssh("rtx-1", "test ! -e /opt/sparkwright && test -e /home/mine/kept && sudo rm -r /home/mine")
    assert ssh("rtx-1", "ls -d /opt/models") == "/opt/models"
