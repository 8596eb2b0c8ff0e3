"""Every command of an emergency, with a broken plan: the command uses the hosts' state; only a
host with false answers fails, and a deploy does not start.
"""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.connection_data import connection_data
from sparkwright.facts.answers import MOST_TEXT
from sparkwright.facts.asking import HostError
from sparkwright.host.control import ControlAnswer
from sparkwright.host.disk_usage import DiskUsage, Item
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.logs import LogLine, LogsAnswer
from sparkwright.host.release import SwitchJournal
from sparkwright.host.removal import RemovalAnswer
from sparkwright.host.status import HostStatus
from sparkwright.operations.lib.switching import UNIT
from sparkwright.run import questions, rollout, site
from sparkwright.run.site import unplanned_fleet
from sparkwright.run.state import HostRun, attach
from tests.operations.emergencies import host, pyinfra, sparkwright, unreachable, write_site
from tests.operations.harness import FakeHost, fake, marked
from tests.unit.builders import kept_service, probe
from tests.unit.results.test_status import answer
from tests.unit.security.test_hostile_answers import EVIL, harmless

ROOT = "/data/sparkwright"
MODEL = Item("model", "a/b@cccc", f"/opt/models/a--b/{'c' * 40}", 5, 5, ("qwen36 b",))
BARE = Item("model", "a/d@dddd", f"/opt/models/a--d/{'d' * 40}", 5, 5, (), "has no receipt")
STAGE = Item("unfinished", "a@1", "/opt/models/a--b/.staging-1", 7, 7)
USAGE = DiskUsage((MODEL, BARE, STAGE), ())


def gate(release: str = "b" * 12, root: str = ROOT, **changes: Any) -> dict[str, Any]:
    """A release's record in the host's status, with changes of the release's smoke test."""
    result: dict[str, Any] = encode(kept_service(release, root=root, **changes))
    return result


def status(*, root: str = ROOT, proxy: Any = None, **changes: Any) -> HostStatus:
    """Status of a host with one service, which has two releases."""
    seen = encode(answer())
    for release, kept in seen["services"]["qwen36"]["releases"].items():
        kept["service"] = gate(release, root, proxy=proxy)
    expected = {key: seen[key] for key in encode(HostStatus(0, None, None, (), {}))}
    return decode(HostStatus, {**expected, **changes})


def unplanned(**answers: Any) -> tuple[FakeHost, HostRun]:
    """A host in a run without a plan; its services root comes from the readable part of
    group_data.
    """
    answers.setdefault("status", status())
    item = fake(None, **answers)
    item.data = _Data(services_root=ROOT, ssh_hostname="10.0.0.1")
    hosts: Any = {"spark-1": item}
    run = site.unplanned(hosts, site.Invocation("i"), "it is broken")
    attach(run, hosts)
    return item, run.hosts["spark-1"]


class _Data(dict[str, Any]):
    def __init__(self, **fields: Any) -> None:
        super().__init__(fields)

    def dict(self) -> dict[str, Any]:
        return self


def test_a_release_without_expected_answers_does_not_pass() -> None:
    seen = encode(status())
    seen["services"]["qwen36"]["releases"]["b" * 12]["service"] = None
    item, run = unplanned(status=seen, deep={})
    with pytest.raises(HostError, match="qwen36: the release has no expected answers"):
        questions.deep_smoke(item, run)  # type: ignore[arg-type]


ENDED = encode(SwitchJournal("abc", "ended", "good", (), 12.5))
#: The command, the host's answer beside its status, and the resulting message.
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "remove": (
        ("remove", "--yes"),
        {
            "observe": probe(unit_files=["sparkwright-qwen36.service"]),
            "lock": {"held": True},
            "removal": RemovalAnswer(("unit sparkwright-qwen36.service",), ()),
        },
        "removed unit sparkwright-qwen36.service",
    ),
    "stop": (
        ("stop", "--yes"),
        {"control": ControlAnswer(("qwen36",), {"qwen36": "stopped"}), "lock": {"held": True}},
        "qwen36: stopped",
    ),
    "logs": (
        ("logs",),
        {"logs": LogsAnswer(("qwen36",), (LogLine(1.0, "qwen36", "INFO ready"),))},
        "qwen36: INFO ready",
    ),
    "activate": (
        ("activate", "chat", "--yes"),
        {
            "activate": ActivateAnswer(("writer", "chat"), "evening", "writer", "abc"),
            "jobs": {UNIT: JobStatus(False, False, ENDED)},
            "lock": {"held": True},
        },
        "chat runs, and writer sleeps; down for 12.5 s",
    ),
    "rollback": (("rollback", "--yes", "--to", "c" * 12), {}, f"has no release {'c' * 12} here"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_an_emergency_works_without_a_plan(tmp_path: Path, name: str) -> None:
    """One host answers, and another host is off: the answer is printed, the silent host is named,
    and the exit code is an error.
    """
    arguments, answers, expected = COMMANDS[name]
    write_site(
        tmp_path,
        host("spark-1", status=status(root="/opt/sparkwright"), **answers),
        unreachable("spark-2"),
        group_data__all="services = {\n",
    )
    done = sparkwright(tmp_path, *arguments)
    text = done.stdout + done.stderr
    assert expected in text
    assert text.count("the plan is broken: group_data/all.py: line 1: not valid Python") == 1
    assert done.returncode == 1
    assert "spark-2" in done.stderr
    assert "127.0.0.1" in done.stderr


@pytest.mark.parametrize("command", ["status", "diff"])
def test_a_read_only_command_makes_no_key(tmp_path: Path, command: str) -> None:
    """The next deploy on another machine would deploy the new key to the fleet."""
    keys = 'keys = {"alice": {}}\n'
    write_site(tmp_path, host("spark-1", status=status()), group_data__all=keys)
    sparkwright(tmp_path, command)
    assert {path.name for path in tmp_path.glob(".sparkwright/*")} <= {"status.json"}
    pyinfra(tmp_path, "--yes", "inventory/lab.py", "roles.serving.serving")
    assert (tmp_path / ".sparkwright/keys/alice").exists()


def test_an_unreadable_inventory_ends_the_run(tmp_path: Path) -> None:
    write_site(tmp_path, host("spark-1", status=status()))
    (tmp_path / "inventory/lab.py").write_text("boxes = [\n")
    done = sparkwright(tmp_path, "status")
    assert (done.returncode, done.stdout) == (2, "")
    assert "inventory/lab.py: line 1" in done.stderr


@pytest.mark.parametrize("deploy", ["deploy.py", "fleet.py"])
def test_a_deploy_with_unreadable_settings_connects_to_no_host(tmp_path: Path, deploy: str) -> None:
    write_site(tmp_path, host("spark-1", status=status()), group_data__all="x = (\n")
    (tmp_path / deploy).write_text("")
    done = pyinfra(tmp_path, "--yes", "inventory/lab.py", deploy)
    assert done.returncode != 0
    assert "Connect" not in done.stderr


def test_connections_are_read_from_a_file_that_is_not_python(tmp_path: Path) -> None:
    file = tmp_path / "all.py"
    file.write_text(
        "\ufeffssh_user = 'spark'\nssh_port=2222  # behind a router\nservices = {\n"
        "ssh_key = open('/tmp/ran', 'w')\n    ssh_password = 'inner'\nimage_tag = 'x'\n"
        "_sudo = True\nmodels_root = '/data/models'\nssh_hostname = " + "[" * 100_000 + "\n"
    )
    assert connection_data(file) == {
        "ssh_user": "spark", "ssh_port": 2222, "_sudo": True, "models_root": "/data/models",
    }  # fmt: skip
    assert connection_data(tmp_path / "nothing.py") == {}


def test_invalid_directories_fall_back_to_the_defaults(tmp_path: Path) -> None:
    data = {
        "models_root": "/data/models", "services_root": ["/"], "break_lock": "perhaps",
        "rollout": {"soak_seconds": 2},
    }  # fmt: skip
    settings = unplanned_fleet({"spark-1": data}).hosts["spark-1"].desired.plan.settings
    assert (settings.models_root, settings.services_root) == ("/data/models", "/opt/sparkwright")
    assert (settings.break_lock, settings.rollout.soak_seconds) == (False, 2)


def lying(**service: Any) -> dict[str, Any]:
    """A status whose one service has an impossible name or release."""
    seen = encode(status())
    named = service.pop("name", "qwen36")
    seen["services"] = {named: {**seen["services"]["qwen36"], **service}}
    return dict(seen)


PATHS = {
    "a name that is a path": lying(name="../../etc"),
    "a name with escapes": lying(name="a\x1b[2J"),
    "a release that is a path": lying(current="../../../../etc"),
    "a kept release that is one": lying(releases={"/etc/passwd": {"at": 1.0, "service": gate()}}),
    "a good one with a line break": lying(good="a\nb"),
}


@pytest.mark.parametrize("case", PATHS)
@pytest.mark.parametrize("question", [questions.facts, questions.deep_smoke])
def test_impossible_names_fail_the_host(case: str, question: Any) -> None:
    item, run = unplanned(status=PATHS[case])
    with pytest.raises(HostError, match="is not a service") as raised:
        question(item, run)
    assert item.programs == ["status"]
    assert "\x1b" not in str(raised.value)
    item, run = unplanned(status=PATHS[case])
    assert rollout.targets_of(item, run, to=None, only=None) is None  # type: ignore[arg-type]


def test_a_release_with_files_of_another_service_is_refused() -> None:
    """A record that names files and units of another service is invalid."""
    for problem in ({"secrets": "/etc/shadow"}, {"unit": "sshd.service"}, {"name": "other"}):
        record = gate(**problem)
        item, run = unplanned(status=lying(releases={"b" * 12: {"at": 1.0, "service": record}}))
        assert rollout.targets_of(item, run, to=None, only=None) is None  # type: ignore[arg-type]
        assert "has the record of another service" in str(item.memory.failure)
        assert item.programs == ["status"]


class Endless(str):
    """An answer of letters that is too long for the text of an inventory."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{marked('@')!r}.replace('@', {str(self)!r} * {MOST_TEXT + 1})"


@pytest.mark.parametrize("arguments", [("status",), ("history",), ("models", "list")], ids=" ".join)
def test_output_of_hosts_is_shown_as_text(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Escapes, an endless answer and wrong types, beside an honest host."""
    evil = EVIL.replace("\ud800", "")
    seen = encode(status(root="/opt/sparkwright"))
    seen["history"] = [{**seen["history"][0], "by": evil, "why": [evil]}]
    seen["services"]["qwen36"]["releases"]["b" * 12]["tag"] = evil
    usage = {"things": [{**encode(USAGE)["things"][0], "name": evil, "fault": evil}],
             "foreign": [evil]}  # fmt: skip
    write_site(
        tmp_path,
        host("honest", status=status(root="/opt/sparkwright"), disk_usage=USAGE),
        host("evil", status=seen, disk_usage=usage),
        host("endless", status=Endless("x"), disk_usage=marked("[" * 99_999)),
        host("typed", status=marked('{"now": []}'), disk_usage=marked('{"things": 5}')),
        group_data__all="x = (\n",
    )
    done = sparkwright(tmp_path, *arguments)
    assert done.returncode == 1
    assert "@fake/honest" in done.stdout
    for name in ("endless", "typed"):
        assert f"@fake/{name}: " in done.stderr
    assert harmless(done.stdout)
    assert harmless(done.stderr)
