"""Endpoints: data of a planned fleet for clients, without secrets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.secrets import VARIABLE
from sparkwright.config.tls import CA
from sparkwright.extras.endpoints.clients import FORMATS, render, usable
from sparkwright.extras.endpoints.command import Exported, export
from sparkwright.findings.user_error import UserError
from sparkwright.site.endpoints import Endpoint, key_command
from sparkwright.site.fleet import PlannedHost
from sparkwright.tls.authority import authority
from tests.golden import compare
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import RTX, SPARK, catalog, plan
from tests.unit.cli.answering import exits, run
from tests.unit.clusters import fleets
from tests.unit.security.test_certificates import BEHIND, NOW

cases = Tables(__file__)

SECRET = "sk-this-must-never-be-written-anywhere"


def planned(**hosts: Any) -> dict[str, PlannedHost]:
    """Hosts from (services, settings) pairs; ``spark_1`` is the host spark-1."""
    planned_hosts = {}
    for name, (services, data) in hosts.items():
        host = name.replace("_", "-")
        planned_hosts[host] = PlannedHost(plan(services, host, **data), catalog(), data=data)
    return planned_hosts


def exported(**hosts: Any) -> Exported:
    """Export of hosts that SSH reaches by their names."""
    return export(planned(**hosts))


def lab() -> tuple[Endpoint, ...]:
    """Two Sparks and an RTX 5090, as in inventory/lab.py."""
    return exported(spark_1=(SPARK, {}), spark_2=(SPARK, {}), rtx_1=(RTX, {})).endpoints


def single(services: dict[str, Any], **data: Any) -> Endpoint:
    (endpoint,) = exported(spark_1=(services, data)).endpoints
    return endpoint


def spark(**changes: Any) -> dict[str, Any]:
    return {"qwen36": {**SPARK["qwen36"], **changes}}


@pytest.mark.parametrize("form", FORMATS)
def test_each_client_gets_address_model_and_limits(form: str) -> None:
    compare(f"clients/lab.{form}", render(form, usable(form, lab())[0]))


@pytest.mark.parametrize("form", FORMATS)
def test_models_that_pool_are_offered_to_no_chat(form: str) -> None:
    embed = {**SPARK["qwen36"], "port": 8001, "arguments": {"runner": "pooling"}}
    pools = replace(single({"embed": embed}), service="embed")
    assert not pools.chats
    endpoints, notes = usable(form, (pools, *lab()))
    assert (pools in endpoints) == (form in ("env", "json"))
    assert any("spark-1.embed gives vectors or scores" in note for note in notes) != (
        pools in endpoints
    )
    assert "OPENAI_MODEL=embed" not in render("env", (pools, *lab()))


@pytest.mark.parametrize("form", ["claude-code", "opencode", "codex"])
def test_agents_get_services_that_call_tools(form: str) -> None:
    mute = replace(lab()[0], service="mute", tools=False)
    endpoints, notes = usable(form, (mute, *lab()))
    assert mute not in endpoints
    assert "spark-1.mute calls no tools, and is left out" in notes
    with pytest.raises(UserError, match="this client can't use any service"):
        usable(form, (mute,))


def test_a_users_own_name_has_no_advice() -> None:
    (name,) = single(spark(served_names=["mine"])).names
    assert (name.figures, name.thinking) == ({}, None)


@cases("settings", "service", "address")
def test_the_clients_address_is_the_lan_address(
    settings: dict[str, Any], service: dict[str, Any], address: str
) -> None:
    assert single(spark(**service), **settings).base_url == f"http://{address}/v1"


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "::1"])
def test_a_loopback_service_is_left_out_with_a_note(bind: str) -> None:
    result = exported(spark_1=(SPARK, {}), spark_2=(spark(bind=bind), {}))
    assert [endpoint.host for endpoint in result.endpoints] == ["spark-1"]
    assert result.notes == (f"spark-2: qwen36 listens on {bind} only, and is left out",)
    with pytest.raises(UserError, match=r"0\.0\.0\.0"):
        exported(spark_2=(spark(bind=bind), {}))


def test_the_fleets_address_replaces_every_service_behind_it() -> None:
    keys = {"laptop": {}, "family": {"models": ["other"]}}
    other = {"other": {**SPARK["qwen36"], "served_names": ["other", "second"], "proxy": True}}
    hosts = planned(
        spark_1=(SPARK, {"address": {"port": 8443}, "keys": keys, "tls": "own"}),
        spark_2=(SPARK, {"keys": keys, "tls": "own"}),
        spark_3=(other, {"keys": keys, "tls": "own"}),
    )
    shared = export(hosts, "laptop").endpoints
    assert {(each.base_url, each.host, each.shared) for each in shared} == {
        ("https://spark-1:8443/v1", "spark-1", True)
    }
    names = [[name.name for name in each.names] for each in shared]
    assert names == [["qwen36-35b-heretic", "qwen36-fast", "qwen36-deep"], ["other", "second"]]
    (family,) = export(hosts, "family").endpoints
    assert [name.name for name in family.names] == ["other"]
    direct = export(hosts, "laptop", direct=True).endpoints
    assert [each.base_url for each in direct] == [f"https://{host}:8000/v1" for host in hosts]
    inner = planned(spark_1=(SPARK, {"address": {"bind": "127.0.0.1"}}))
    with pytest.raises(UserError, match="nothing"):
        export(inner)


def test_hosts_without_an_address_are_reported_at_once() -> None:
    hosts = planned(spark_1=(SPARK, {}), spark_2=(SPARK, {}))
    for host, address in zip(hosts, ("@local", "@docker/x"), strict=True):
        hosts[host] = replace(hosts[host], data={"ssh_hostname": address})
    with pytest.raises(UserError) as caught:
        export(hosts)
    assert [problem.subject.host for problem in caught.value.findings] == ["spark-1", "spark-2"]


@cases("length", "context")
def test_the_context_comes_from_the_service(length: int | str, context: int) -> None:
    assert single(spark(arguments={"max_model_len": length})).context == context


@pytest.mark.parametrize("length", [64, 2048, 4096, 8192, 16384, 40960, 262144])
def test_the_longest_answer_leaves_room_for_a_prompt(length: int) -> None:
    endpoint = single(spark(arguments={"max_model_len": length}))
    assert endpoint.max_output is not None
    assert endpoint.max_input is not None
    assert endpoint.max_input >= endpoint.max_output >= min(2048, length // 2)


def test_tools_and_reasoning_are_offered_if_the_service_supports_them() -> None:
    bare = single(spark(arguments={"enable_auto_tool_choice": None, "reasoning_parser": None}))
    assert (bare.tools, bare.reasoning) == (False, False)
    for entry in safe_load(render("litellm", [bare]))["model_list"]:
        assert "chat_template_kwargs" not in entry["litellm_params"]


def test_each_key_file_has_its_own_variable() -> None:
    result = exported(
        spark_1=(SPARK, {}), spark_2=(SPARK, {}), rtx_1=(RTX, {"api_key_file": "keys/rtx"})
    )
    variables = [endpoint.key.variable for endpoint in result.endpoints]
    assert variables == [VARIABLE, VARIABLE, f"{VARIABLE}_RTX_1"]


def test_a_client_reads_the_key_with_the_command_of_the_setting() -> None:
    result = exported(spark_1=(SPARK, {"api_key_command": ["pass", "show", "my lab"]}))
    (key,) = {endpoint.key for endpoint in result.endpoints}
    assert key_command(key) == f"export {VARIABLE}=\"$(pass show 'my lab')\""
    entry = json.loads(render("json", result.endpoints))["endpoints"][0]
    command = ["pass", "show", "my lab"]
    assert entry["api_key"] == {"variable": VARIABLE, "file": None, "command": command}


def test_a_clients_own_key_selects_the_services_that_accept_it() -> None:
    services = {"qwen36": {**SPARK["qwen36"], "proxy": True}}
    keys = {"openclaw": {}, "laptop": {"command": ["pass", "show", "laptop"]}}
    hosts = planned(spark_1=(services, {"keys": keys}), spark_2=(services, {}))
    result = export(hosts, "openclaw")
    (endpoint,) = result.endpoints
    assert (endpoint.host, endpoint.key.source) == ("spark-1", ".sparkwright/keys/openclaw")
    assert result.notes == ("spark-2: qwen36 does not accept the key 'openclaw'",)
    (endpoint,) = export(hosts, "laptop").endpoints
    assert key_command(endpoint.key) == f'export {VARIABLE}="$(pass show laptop)"'
    with pytest.raises(UserError, match="did you mean 'openclaw'"):
        export(hosts, "opencla")


@cases("more", "message")
def test_members_of_an_exclusive_group_are_named(more: dict[str, str], message: str) -> None:
    item = {**SPARK["qwen36"], "exclusive": "day", "proxy": True, **more}
    services = {"qwen36": item, "coder": {**item, "port": 8001, "served_names": ["coder"]}}
    notes = exported(spark_1=(services, {}), spark_2=(SPARK, {})).notes
    assert "; ".join(notes) == f"spark-1: {message}"


def test_a_name_of_different_models_is_reported() -> None:
    other = {"gemma": {"recipe": "gemma4-26b-a4b-stock", "served_names": ["qwen36-fast"]}}
    (note,) = exported(spark_1=(SPARK, {}), spark_2=(other, {})).notes
    assert note.startswith("qwen36-fast stands for different models: AEON-7/")


@pytest.mark.parametrize("form", list(FORMATS))
def test_no_format_contains_a_key(form: str, tmp_path: Path, checkout: Path) -> None:
    file = tmp_path / "key"
    file.write_text(SECRET)
    file.chmod(0o600)
    data = ("--data", f"api_key_file={file}")
    result = exits(0, "endpoints", "inventory/lab.py", "--format", form, *data,
                  env={VARIABLE: SECRET})  # fmt: skip
    assert SECRET not in result.output
    assert VARIABLE in result.stdout
    assert f'the client needs: export {VARIABLE}="$(cat {file})"' in result.stderr


def test_a_file_is_written_whole(tmp_path: Path, checkout: Path) -> None:
    file = tmp_path / "new" / "endpoints.json"
    result = run("endpoints", "inventory/lab.py", "--limit", "rtx-1", "--output", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert [entry["host"] for entry in json.loads(file.read_text())["endpoints"]] == ["rtx-1"]


def test_shipped_advice_is_for_names_that_are_served() -> None:
    for recipe in catalog().recipes.values():
        assert set(recipe.aliases) <= set(recipe.served_names), recipe.name


def test_clients_of_a_cluster_get_only_its_head() -> None:
    hosts = {"spark-1": fleets.data(), "spark-2": fleets.data()}
    exported = export(fleets.planned(hosts).or_raise())
    assert [endpoint.host for endpoint in exported.endpoints] == ["spark-1"]
    assert exported.notes == ()


def test_every_configuration_has_the_ca_and_no_key(here: Path) -> None:
    authority(NOW)
    endpoints = exported(spark_1=(BEHIND, {"tls": "own"})).endpoints
    ca = str(here / CA)
    assert endpoints[0].base_url == "https://spark-1:8000/v1"
    assert json.loads(render("json", endpoints))["endpoints"][0]["ca"] == ca
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
        assert f"\n{name}={ca}\n" in render("env", endpoints)
    assert safe_load(render("litellm", endpoints))["litellm_settings"] == {"ssl_verify": ca}
    (service,) = safe_load(render("open-webui", endpoints))["services"].values()
    assert service["volumes"] == [f"{ca}:{service['environment']['SSL_CERT_FILE']}:ro"]
    assert "https://spark-1:8000/v1" in render("openclaw", endpoints)
