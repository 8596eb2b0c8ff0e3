"""A handover opens nothing that was closed, and no value in it becomes anything else."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from tests import quadlet as reader
from tests.unit.cli.answering import exits
from tests.unit.cli.fleet_of_five import fleet as fleet
from tests.unit.extras.handover.services import (
    HERETIC,
    HOSTILE,
    container,
    files,
    manifests,
    quadlet,
)

BOTH = ("default", "strict")


def shape(data: Any) -> Any:
    """A document without its texts: which keys it has, where."""
    if isinstance(data, dict):
        return {key: shape(value) for key, value in data.items()}
    return [shape(item) for item in data] if isinstance(data, list) else type(data)


def given(value: str) -> dict[str, Any]:
    """Settings with a value where any text may stand."""
    return {"environment": {"A": value}, "arguments": {"chat_template": value}}


def kubelet(text: str) -> str:
    """Text as the kubelet expands it; ``$(NAME)`` would be a variable's value."""
    assert "$(" not in text.replace("$$", "")
    return text.replace("$$", "$")


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_becomes_a_key_of_a_manifest(value: str) -> None:
    attack = given(value)
    assert shape(manifests(**attack)) == shape(manifests(**given("a")))
    result = container(**attack)
    (got,) = [kubelet(item["value"]) for item in result["env"] if item["name"] == "A"]
    assert got == value
    assert [kubelet(word) for word in result["args"]][-1] == value


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_becomes_a_key_or_a_specifier_of_a_quadlet(value: str) -> None:
    result = quadlet(**given(value))
    assert shape(result) == shape(quadlet(**given("a")))
    arguments = reader.arguments(result["Container"]["Exec"][0])
    assert arguments[-1] == value
    assert reader.arguments(result["Container"]["Environment"][-1]) == [f"A={value}"]


#: The generator's own, whose specifiers are meant.
_CIDFILE = " --cidfile=%t/%N.cid"


@pytest.mark.parametrize("value", HOSTILE)
def test_what_podmans_generator_hands_systemd_is_one_command(value: str, tmp_path: Path) -> None:
    made = reader.generated(tmp_path, files("quadlet", environment={"A": value}))
    lines = made.split("\n")  # as systemd reads it: no other character ends a line
    commands = [line for line in lines if line.startswith("ExecStart=")]
    assert [line.split()[1] for line in commands] == ["network", "run"]
    assert f"A={value}" in reader.arguments(commands[1].partition("=")[2].replace(_CIDFILE, ""))
    assert "ExecStart=/bin/evil" not in lines


@pytest.mark.parametrize("word", ["", ";"])
def test_a_word_that_would_end_the_command_is_refused(word: str) -> None:
    """A bare semicolon is systemd's end of a command: the next word would be run on the host."""
    evil = {"allowed_origins": [word, "/bin/sh", "-c", "id"]}
    with pytest.raises(UserError, match="can't pass on the argument"):
        quadlet(arguments=evil)
    assert word in container(arguments=evil)["args"]


def test_an_address_with_a_percent_is_no_specifier() -> None:
    (port,) = quadlet(proxy=False, bind="fe80::1%eth0")["Container"]["PublishPort"]
    assert reader.literal(port) == "[fe80::1%eth0]:8000:8000"


@pytest.mark.parametrize("hardening", BOTH)
def test_no_pod_has_power_over_its_node(hardening: str) -> None:
    result = container(hardening=hardening)
    secured = result["securityContext"]
    assert secured["capabilities"] == {"drop": ["ALL"], "add": []}
    assert secured["allowPrivilegeEscalation"] is False
    assert secured["seccompProfile"] == {"type": "RuntimeDefault"}
    assert secured["readOnlyRootFilesystem"] is (hardening == "strict")
    pod = result["pod"]
    assert pod["automountServiceAccountToken"] is False
    assert not pod.keys() & {"hostNetwork", "hostIPC", "hostPID", "hostUsers", "securityContext"}
    binds = {item["name"] for item in pod["volumes"] if "hostPath" in item}
    writable = {item["name"] for item in result["volumeMounts"] if not item.get("readOnly")}
    assert binds & writable == (set() if hardening == "strict" else {"caches"})


@pytest.mark.parametrize("hardening", BOTH)
def test_no_container_of_podman_has_power_over_its_host(hardening: str) -> None:
    result = quadlet(hardening=hardening)["Container"]
    assert result["DropCapability"] == ["all"]
    assert "AddCapability" not in result
    assert result["NoNewPrivileges"] == ["true"]
    assert result["PidsLimit"] == ["4096"]
    assert not result.keys() & {
        "PodmanArgs",
        "GlobalArgs",
        "SecurityLabelDisable",
        "SeccompProfile",
    }
    assert result.get("ReadOnly") == (["true"] if hardening == "strict" else None)
    binds = [item for item in result["Volume"] if item.startswith("/") and ":" in item]
    assert all(bind.endswith(":ro") for bind in binds)


def test_outsiders_reach_no_route_without_a_key() -> None:
    """vLLM answers /metrics, /tokenize and others without one; no proxy of ours stands before."""
    result = manifests(bind="0.0.0.0")
    assert result["Service"]["spec"]["type"] == "ClusterIP"
    (way,) = result["NetworkPolicy"]["spec"]["ingress"]
    assert way == {"from": [{"podSelector": {}}], "ports": [{"port": "http"}]}
    alone = quadlet(bind="0.0.0.0")["Container"]
    assert alone["Network"] == ["llm-chat.network"]
    assert alone["PublishPort"] == ["127.0.0.1:8000:8000"]


def test_a_strict_service_begins_no_connection() -> None:
    policy = manifests(hardening="strict")["NetworkPolicy"]["spec"]
    assert policy["egress"] == []
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    network = files("quadlet", hardening="strict")["etc/containers/systemd/llm-chat.network"]
    assert dict(reader.sections(network)["Network"])["Options"] == "no_default_route=1"


def test_a_quadlet_that_answers_the_lan_begins_no_connection_either() -> None:
    """Without a default route it could not answer: its route is closed by rules."""
    written = files("quadlet", proxy=False, bind="0.0.0.0")
    network, container = (written[f"etc/containers/systemd/llm-chat.{kind}"] for kind in
                          ("network", "container"))  # fmt: skip
    keys = dict(reader.sections(network)["Network"])
    bridge = keys["PodmanArgs"].removeprefix("--interface-name=")
    assert "Options" not in keys
    assert "Network=llm-chat.network\nPublishPort=0.0.0.0:8000:8000\n" in container
    rule = f"-t mangle -I FORWARD -i {bridge} ! -o {bridge} -m conntrack --ctstate NEW -j DROP\n"
    for program in ("iptables", "ip6tables"):
        assert f"\nExecStartPre=/usr/sbin/{program} -w 30 {rule}" in container
        assert f"\nExecStopPost=-/usr/sbin/{program} -w 30 {rule.replace('-I', '-D')}" in container


@pytest.mark.parametrize("form", ["kubernetes", "quadlet"])
def test_the_key_is_in_no_file_and_on_no_command_line(
    form: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fleet / ".sparkwright/api_key").write_text("sk-this-is-the-secret-key\n")
    (fleet / ".sparkwright/api_key").chmod(0o600)
    result = exits(0, "render", "out", "--format", form)
    assert "sk-this" not in result.output
    assert '"$(cat .sparkwright/api_key)" | ' in result.output
    paths = [path for path in (fleet / "out").rglob("*") if path.is_file()]
    assert paths
    assert not any("sk-this" in item.read_text() for item in paths)


def test_a_secret_among_the_variables_is_refused(fleet: Path) -> None:
    services = {"q": {"recipe": HERETIC, "environment": {"HF_TOKEN": "hf_secret"}}}
    with (fleet / "group_data/sparks.py").open("a") as data:
        data.write(f"services = {services!r}\n")
    arguments = ["render", "out", "--format", "kubernetes", "--limit", "spark-1"]
    assert "secret-in-environment" in exits(2, *arguments).output
    assert not (fleet / "out").exists()
