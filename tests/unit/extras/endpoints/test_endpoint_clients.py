"""Exported files, read by the real clients or by the clients' own schema.

LiteLLM takes 550 MB with its dependencies: ``make clients`` installs it separately and runs this
file; an ``openclaw`` on the path is tested too. Elsewhere these tests are skipped with a message.
"""

import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sparkwright.catalog import Alias
from sparkwright.config.secrets import VARIABLE
from sparkwright.extras.endpoints.clients import render
from sparkwright.site.endpoints import Endpoint, Key, ServedName
from tests.host.serving import Handler, listening
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, alone
from tests.unit.extras.endpoints.test_endpoints import exported, lab

KEY = "sk-a-key-for-tests-only"
SCHEMA = ROOT / "tests/fixtures/clients/openclaw-2026.9.6.schema.json"


def every_recipe() -> list[Endpoint]:
    """An endpoint of each recipe, with all names and figures of the recipe."""
    each = (exported(box=({"llm": {"recipe": recipe}}, {})) for recipe in alone())
    return [endpoint for result in each for endpoint in result.endpoints]


def test_openclaws_schema_accepts_the_configuration() -> None:
    jsonschema: Any = pytest.importorskip("jsonschema", reason="make setup installs jsonschema")
    schema = json.loads(SCHEMA.read_text())
    for endpoints in (lab(), *([endpoint] for endpoint in every_recipe())):
        jsonschema.validate(json.loads(render("openclaw", endpoints)), schema)
    data = json.loads(render("openclaw", lab()))
    data["models"]["providers"]["spark-1.qwen36"]["url"] = "http://spark-1"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_openclaw_itself_accepts_the_configuration(tmp_path: Path) -> None:
    openclaw = shutil.which("openclaw")
    if openclaw is None:
        pytest.skip("no openclaw on the path (npm install -g openclaw, Node 24)")
    file = tmp_path / "openclaw.json"
    file.write_text(render("openclaw", lab()))
    done = subprocess.run(
        [openclaw, "config", "validate", "--json"], capture_output=True, text=True, check=False,
        env={**os.environ, "OPENCLAW_CONFIG_PATH": str(file), "HOME": str(tmp_path), VARIABLE: KEY},
    )  # fmt: skip
    assert json.loads(done.stdout)["valid"], done.stdout


def test_python_dotenv_inserts_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    dotenv: Any = pytest.importorskip("dotenv", reason="make setup installs python-dotenv")
    monkeypatch.setenv(VARIABLE, KEY)
    values = dotenv.dotenv_values(stream=io.StringIO(render("env", lab())))
    assert values["OPENAI_BASE_URL"] == "http://spark-1:8000/v1"
    assert values["OPENAI_API_KEY"] == values["SPARKWRIGHT_3_API_KEY"] == KEY
    assert values["SPARKWRIGHT_3_MODELS"] == "qwen36-35b,qwen36-fast,qwen36-deep"
    assert values["SPARKWRIGHT_3_CONTEXT"] == "65536"


MESSAGE = {"role": "assistant", "content": "42"}
COMPLETION = {
    "id": "1", "object": "chat.completion", "created": 1,
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip


@contextmanager
def _server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An OpenAI-style server, and its requests: path, authorization and body."""
    asked: list[dict[str, Any]] = []

    class Completions(Handler):
        def do_POST(self) -> None:
            body = json.loads(self.body())
            shown = {"path": self.path, "authorization": self.headers["Authorization"]}
            asked.append({**shown, **body})
            answer = json.dumps({**COMPLETION, "model": body["model"]}).encode()
            self.reply(200, answer, {"Content-Type": "application/json"})

    with listening(Completions) as port:
        yield f"http://127.0.0.1:{port}", asked


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client.

    The variable selects the package's own table of models, since an import would otherwise request
    a table.
    """
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv(VARIABLE, KEY)
    return pytest.importorskip("litellm", reason="litellm is not installed: make clients")


def test_litellm_routes_by_the_configuration(litellm: Any) -> None:
    types: Any = pytest.importorskip("litellm.types.router")
    alias = Alias(title="no thoughts", temperature=0.7, top_k=20, thinking=False, source="a test")
    with _server() as (url, asked):
        small, large = (
            Endpoint(
                host=host, service="llm", base_url=f"{url}/{host}/v1", key=Key(VARIABLE, "key"),
                model="org/model", names=(ServedName("quick", alias),), context=context,
                images=False, tools=True, reasoning=True,
            )
            for host, context in (("small", 8192), ("large", 262144))
        )  # fmt: skip
        config = safe_load(render("litellm", [small, large]))
        for entry in config["model_list"]:
            types.Deployment(**entry)
        router = litellm.Router(model_list=config["model_list"], **config["router_settings"])

        def ask(text: str) -> dict[str, Any]:
            router.completion(model="quick", messages=[{"role": "user", "content": text}])
            return asked[-1]

        seen = ask("What is 17 + 25?")
        assert seen["authorization"] == f"Bearer {KEY}"
        assert (seen["model"], seen["temperature"], seen["top_k"]) == ("quick", 0.7, 20)
        assert seen["chat_template_kwargs"] == {"enable_thinking": False}
        # Only the large service has room for a prompt of some 10000 tokens.
        assert {ask("word " * 10000)["path"] for _ in range(5)} == {"/large/v1/chat/completions"}


def test_litellms_proxy_accepts_every_recipe(litellm: Any) -> None:
    config = safe_load(render("litellm", lab()))
    router = litellm.Router(model_list=config["model_list"], **config["router_settings"])
    hosts = {"qwen36-35b-heretic": 2, "qwen36-35b": 1, "qwen36-fast": 3, "qwen36-deep": 3}
    for name, number in hosts.items():
        assert len(router.get_model_list(model_name=name)) == number
    config = safe_load(render("litellm", every_recipe()))
    assert litellm.Router(model_list=config["model_list"]).get_model_names()
