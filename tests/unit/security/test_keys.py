"""Keys with names on the controller: their files, and the output of commands."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sparkwright.cli import key as key_command
from sparkwright.config.keys import ENGINE, KeyFile, Keys, keys_of
from sparkwright.config.parse import parse_settings
from sparkwright.config.secrets import VARIABLE
from sparkwright.config.settings import HostSettings
from sparkwright.findings.user_error import UserError
from sparkwright.proxy.haproxy import key_map
from sparkwright.results.answers import Answers
from sparkwright.site.fleet import Fleet, PlannedHost
from tests.tables import Tables
from tests.unit.builders import SPARK, catalog, plan
from tests.unit.cli import answering as session

cases = Tables(__file__)

SERVICES = {"qwen36": {**SPARK["qwen36"], "proxy": True}}
DATA: dict[str, Any] = {"keys": {"openclaw": {}, "laptop": {}}}


@pytest.fixture(autouse=True)
def site(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site without a key."""
    monkeypatch.delenv(VARIABLE, raising=False)
    return here / ".sparkwright"


def keys(host: str = "spark-1", environment: Mapping[str, str] | None = None, **data: Any) -> Keys:
    """A host's keys; settings as group_data gives them."""
    settings = HostSettings.model_validate({"services": {}, **(data or DATA)})
    return keys_of(host, settings, environment or {})


class Hosts:
    """Two hosts with proxies, and the effects of the command line on them."""

    def __init__(self) -> None:
        self.loaded: dict[str, list[str]] = {}
        self.away: list[str] = []
        self.planned = {
            name: PlannedHost(plan(SERVICES, name, **DATA), catalog())
            for name in ("spark-1", "spark-2")
        }

    def answer(self, question: str) -> Answers[list[str]]:
        for name, host in self.planned.items():
            if question == "renewed_keys" and name not in self.away:
                result = keys_of(name, host.plan.settings, {})
                self.loaded[name] = key_map(result.clients).splitlines()
        answers = {name: self.loaded[name] for name in self.planned if name not in self.away}
        return session.silent(answers, *self.away)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """Hosts with the present keys."""
    result = Hosts()
    session.answering(monkeypatch, lambda asked: result.answer(asked.name))
    monkeypatch.setattr(key_command, "load", lambda *_: Fleet(result.planned, ()))
    result.answer("renewed_keys")
    return result


def run(*arguments: str) -> Result:
    """``sparkwright key …``; its output has no key."""
    result = session.run("key", *arguments)
    for file in Path(".sparkwright").rglob("*"):
        if file.is_file() and (text := file.read_text().strip()):
            assert text not in result.output
    return result


def everything(hosts: Hosts) -> set[str]:
    """Keys that any host accepts."""
    return {line for lines in hosts.loaded.values() for line in lines}


# --- Files -------------------------------------------------------------------------------------


def test_only_the_owner_can_read_new_keys(site: Path) -> None:
    result = keys()
    values = [key.value for some in result.clients.values() for key in some]
    assert list(result.clients) == ["default", "openclaw", "laptop"]
    assert len({*values, result.engine.value}) == 4
    assert (
        stat.S_IMODE(site.stat().st_mode) == stat.S_IMODE((site / "keys").stat().st_mode) == 0o700
    )
    for name in ("api_key", "engine_key", "keys/openclaw", "keys/laptop"):
        assert stat.S_IMODE((site / name).stat().st_mode) == 0o600
    assert keys() == result
    assert not any(value in repr(result) for value in values)


def test_a_key_that_other_users_may_read_is_refused(site: Path) -> None:
    keys()
    (site / "keys/laptop").chmod(0o640)
    with pytest.raises(UserError, match=r"chmod 600 \.sparkwright/keys/laptop"):
        keys()


def test_two_clients_with_one_key_are_refused(site: Path) -> None:
    """A revoked key that another client shares would still be valid."""
    keys()
    (site / "keys/laptop").write_text((site / "keys/openclaw").read_text())
    with pytest.raises(UserError, match="'openclaw' and 'laptop' are the same"):
        keys()


@pytest.mark.parametrize("name", ["default", "sparkwright", "UPPER", "a b", "a\nb", "../x", ""])
def test_an_unsafe_key_name_is_refused(name: str) -> None:
    """Names are written to HAProxy's map and log, and are names of files."""
    with pytest.raises(UserError, match="keys"):
        parse_settings("a", {"services": {}, "keys": {name: {}}}, lambda _: "all.py")


def test_the_engines_key_is_not_derived_from_a_clients_key(site: Path) -> None:
    """The owner of a former client key can't derive vLLM's key."""
    engine = keys().engine
    assert keys("spark-2").engine != engine
    (site / "api_key").write_text("another-key-of-the-fleet\n")
    assert keys().engine == engine
    (site / "engine_key").unlink()
    assert keys().engine != engine


def test_a_key_of_the_environment_makes_the_same_engine_key_everywhere() -> None:
    item = keys(environment={VARIABLE: "a-key-of-the-environment"})
    assert not ENGINE.exists()
    assert keys(environment={VARIABLE: "a-key-of-the-environment"}) == item
    assert keys(environment={VARIABLE: "b-key-of-the-environment"}).engine != item.engine
    assert keys(api_key_command=["echo", "a-key-of-the-environment"]).engine == item.engine


def test_a_commands_output_must_be_a_valid_key() -> None:
    good = {"ci": {"command": ["echo", "a-key-of-a-password-store"]}}
    assert keys(keys=good).clients["ci"][0].value == "a-key-of-a-password-store"
    with pytest.raises(UserError, match=r"keys\.ci\.command"):
        keys(keys={"ci": {"command": ["echo", "short"]}})


def test_a_revoked_key_is_not_recreated(site: Path) -> None:
    keys()
    file = KeyFile(site / "keys/openclaw")
    file.revoke()
    assert keys().clients["openclaw"] == ()
    assert sorted(path.name for path in (site / "keys").iterdir()) == ["laptop", "openclaw.revoked"]
    file.begin()
    (new,) = keys().clients["openclaw"]
    file.promote()
    assert keys().clients["openclaw"] == (new,)


# --- Commands ----------------------------------------------------------------------------------


def test_a_rotation_has_two_keys_and_ends_with_one_key(hosts: Hosts, site: Path) -> None:
    before, old = everything(hosts), (site / "api_key").read_text()
    result = run("rotate", "lab.py")
    assert result.exit_code == 0, result.output
    assert "`sparkwright key retire lab.py`" in result.output
    assert before < everything(hosts)
    assert (site / "api_key").read_text() != old
    assert (site / "api_key.old").read_text() == old
    assert stat.S_IMODE((site / "api_key.old").stat().st_mode) == 0o600
    assert "previous rotation of 'default' is not finished" in run("rotate", "lab.py").output
    assert run("retire", "lab.py").exit_code == 0
    assert len(everything(hosts)) == len(before)
    assert len(everything(hosts) & before) == len(before) - 1
    assert not any(old.strip() in file.read_text() for file in site.rglob("*") if file.is_file())


def test_clients_get_a_new_key_only_after_every_host_has_the_key(hosts: Hosts, site: Path) -> None:
    old = (site / "keys/openclaw").read_text()
    hosts.away = ["spark-2"]
    result = run("rotate", "--name", "openclaw", "lab.py")
    assert result.exit_code == 1
    assert "spark-2: the proxies may lack the new key" in result.output
    assert (site / "keys/openclaw").read_text() == old
    new = (site / "keys/openclaw.new").read_text()
    assert "has not reached every host" in run("retire", "--name", "openclaw", "lab.py").output
    hosts.away = []
    assert run("rotate", "--name", "openclaw", "lab.py").exit_code == 0
    assert (site / "keys/openclaw").read_text() == new


def test_a_revocation_is_reported_only_when_complete(hosts: Hosts) -> None:
    hosts.away = ["spark-2"]
    result = run("revoke", "openclaw", "lab.py")
    assert result.exit_code == 1
    assert "spark-2: the proxies may still accept the previous keys" in result.output
    assert not any(line.endswith("openclaw") for line in hosts.loaded["spark-1"])
    hosts.away = []
    assert "unknown" in run("list", "lab.py").output
    assert run("revoke", "openclaw", "lab.py").exit_code == 0
    assert not any(line.endswith("openclaw") for line in everything(hosts))
    assert sum(line.endswith(("laptop", "default")) for line in everything(hosts)) == 2


def test_the_list_has_names_and_states_and_no_key(hosts: Hosts) -> None:
    run("rotate", "--name", "laptop", "lab.py")
    run("revoke", "openclaw", "lab.py")
    result = run("list", "lab.py")
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines()]
    assert [row[:2] for row in rows[1:]] == [
        ["default", "current"], ["openclaw", "revoked"], ["laptop", "current"], ["laptop", "old"],
    ]  # fmt: skip
    assert all(row[-2:] == ["spark-1,", "spark-2"] for row in rows[1:] if row[1] != "revoked")
    assert not any(line.split()[0] in result.output for line in everything(hosts))


@cases("arguments", "message")
def test_an_invalid_key_is_refused(
    hosts: Hosts, site: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert (site / "api_key").exists()


def test_a_key_of_the_environment_or_a_command_is_not_rotated(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "a-key-of-the-environment")
    assert "unset the variable" in run("rotate", "lab.py").output
    data: dict[str, Any] = {"keys": {"ci": {"command": ["echo", "a-key-of-a-password-store"]}}}
    hosts.planned = {"spark-1": PlannedHost(plan(SERVICES, **data), catalog())}
    for arguments in (("rotate", "--name", "ci", "lab.py"), ("revoke", "ci", "lab.py")):
        assert "keys.ci.command" in run(*arguments).output


@pytest.mark.parametrize("command", ["list", "rotate"])
def test_keys_need_neither_registry_nor_hub(
    command: str, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = session.answering(monkeypatch, lambda asked: hosts.answer(asked.name))
    run(command, "lab.py")
    assert [each.options["resolves"] for each in asked] == [False]
