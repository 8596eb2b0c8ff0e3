"""Open WebUI beside the address: its image, its files, and the place of its secrets."""

from typing import Any

import pytest

from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.operations.address import page_files
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy.open_webui import WITHOUT_TOOLS, page_of
from sparkwright.proxy.pools import planned_pools
from tests.libyaml import safe_load
from tests.unit import builders

KEYS = Keys(
    {"default": (Secret("sk-of-the-fleet-0123"),), "open-webui": (Secret("sk-of-the-page-0123"),)},
    Secret("sk-of-the-engine-0123"),
    page=Secret("sk-of-its-sessions-0123"),
)


def _plan(services: Any = None, **page: Any) -> HostPlan:
    address = {"port": 8080, "open_webui": page}
    return builders.plan(services or {}, address=address, keys={"open-webui": {}})


def _files(plan: HostPlan, **data: Any) -> dict[str, tuple[str, int]]:
    everyone = {plan.host: {"lan_address": "10.0.0.9", **data}}
    pools = planned_pools([plan])
    page = page_of(plan, pools, everyone, KEYS, builders.resolution(plan), dry=True)
    return {path.rpartition("/")[2]: file for path, file in page_files(page, "/opt/x").items()}


def test_the_page_is_pinned_by_digest_and_another_tag_by_the_lock() -> None:
    (image,) = _plan().references.images
    assert image.name == "ghcr.io/open-webui/open-webui:v0.11.3"
    assert str(image.digest).startswith("sha256:751b6177")
    assert _plan(tag="v0.12.0").references.images[0].digest is None


def test_open_webui_uses_its_own_key_and_contacts_no_outside_server() -> None:
    files = _files(_plan(environment={"WEBUI_NAME": "Home"}))
    assert sorted(files) == ["compose.yaml", "secrets.env", "sparkwright-open-webui.service"]
    service = safe_load(files["compose.yaml"][0])["services"]["open-webui"]
    assert service["environment"]["OPENAI_API_BASE_URL"] == "http://10.0.0.9:8080/v1"
    assert service["environment"]["WEBUI_NAME"] == "Home"
    for name in ("ENABLE_SIGNUP", "ANONYMIZED_TELEMETRY", "ENABLE_VERSION_UPDATE_CHECK"):
        assert service["environment"][name] == "False"
    assert service["image"] == f"ghcr.io/open-webui/open-webui:{builders.DIGEST.replace(':', '-')}"
    assert "ports" not in service


def test_only_root_can_read_the_pages_secrets() -> None:
    files = _files(_plan())
    text, mode = files.pop("secrets.env")
    assert (mode, text.splitlines()) == (
        0o600,
        ["OPENAI_API_KEY=sk-of-the-page-0123", "WEBUI_SECRET_KEY=sk-of-its-sessions-0123"],
    )
    assert "sk-" not in str(files)


def test_the_page_verifies_the_address_by_the_sites_ca() -> None:
    plan = builders.plan({}, address={"open_webui": {}}, keys={"open-webui": {}}, tls="own")
    files = _files(plan, tls="own")
    assert files["ca.crt"][0].startswith("-----BEGIN CERTIFICATE")
    environment = safe_load(files["compose.yaml"][0])["services"]["open-webui"]["environment"]
    assert environment["SSL_CERT_FILE"] == "/run/secrets/ca.crt"
    assert environment["OPENAI_API_BASE_URL"].startswith("https://")
    assert environment["WEBUI_SESSION_COOKIE_SECURE"] == "True"


def test_a_sites_variable_replaces_the_default() -> None:
    text, _ = _files(_plan(environment={"ENABLE_SIGNUP": "True"}))["compose.yaml"]
    # Compose refuses a file with a duplicate key.
    assert text.count("ENABLE_SIGNUP") == 1
    assert '"ENABLE_SIGNUP": "True"' in text


_REFUSES = {"tool_call_parser": None}


@pytest.mark.parametrize(
    ("arguments", "tools"),
    [({}, True), (_REFUSES, False), ({**_REFUSES, "runner": "pooling"}, True)],
)
def test_pages_send_no_tools_if_a_chat_model_refuses_tools(arguments: Any, tools: bool) -> None:
    service = {"recipe": "qwen36-35b-a3b-heretic-dflash", "arguments": arguments}
    text, _ = _files(_plan({"llm": service}))["compose.yaml"]
    assert (next(iter(WITHOUT_TOOLS)) in text) is not tools
