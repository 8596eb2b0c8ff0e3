"""Real clients at the address: LiteLLM (``make clients`` installs it) and Open WebUI, which takes
3 GB (``make clients OPEN_WEBUI=PYTHON``, the Python of a virtual environment with Open WebUI).
"""

import json
import os
import subprocess
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.host.models.document import PAGE_SOCKET, Model
from sparkwright.operations.address import page_files
from sparkwright.proxy.haproxy import PAGE, ModelPool, Page, Proxy, Replica
from sparkwright.proxy.open_webui import WITHOUT_TOOLS
from sparkwright.tls.authority import authority
from tests.host.models.address_process import ANSWER, OWN, TOKENS, Address, Engine
from tests.host.models.test_serve import address
from tests.host.proxy import test_tls
from tests.host.proxy.conftest import folder
from tests.host.proxy.haproxy import KEY, Answer, until, whole
from tests.host.proxy.test_address import address_of
from tests.host.serving import free_port
from tests.libyaml import safe_load

__all__ = ["address", "folder"]
#: Python of a virtual environment that has Open WebUI.
PYTHON = os.environ.get("OPEN_WEBUI", "")
NAMES = ["small", "org/large"]
MESSAGES = [{"role": "user", "content": "What is 17 + 25?"}]


def _asked(address: Address) -> list[set[str]]:
    """Requested models of the two engines."""
    engines = (address.small, address.large)
    return [{request.json["model"] for request in engine.requests} for engine in engines]


def test_litellm_lists_all_models_and_chats_with_each_model(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the variable, the import would request a table of models from the network.
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = pytest.importorskip("litellm", reason="litellm is not installed: make clients")
    url = f"http://127.0.0.1:{address.port}"
    listed = litellm.OpenAIGPTConfig().get_models(api_key="laptop", api_base=url)
    assert listed == NAMES
    own = {"api_base": f"{url}/v1", "api_key": "laptop", "messages": MESSAGES}
    for name in listed:
        answer = litellm.completion(model=f"openai/{name}", **own)
        assert (answer.choices[0].message.content, answer.usage.total_tokens) == ("ab", 7)
        stream = litellm.completion(model=f"openai/{name}", stream=True, **own)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        assert text == 'ab"usage"'
    with pytest.raises(litellm.NotFoundError, match=r"The models are: small\."):
        litellm.completion(model="openai/org/large", **own | {"api_key": "guest"}, num_retries=0)
    assert _asked(address) == [{"small"}, {"org/large"}]
    until(lambda: sum(row.requests for row in address.usage()) == 4, "the counts")
    assert [(row.model, row.tokens_in, row.tokens_out) for row in address.usage()] == [
        ("org/large", 10, 4), ("small", 10, 4),
    ]  # fmt: skip


def _open_webui(folder: Path, page: Page) -> subprocess.Popen[bytes]:
    """Open WebUI, started by the command and the environment of its Compose file."""
    for path, (text, _) in page_files(page, "/").items():
        (folder / Path(path).name).write_text(text)
    (folder / "data").mkdir()
    service = safe_load((folder / "compose.yaml").read_text())["services"]["open-webui"]
    command, secrets = service["entrypoint"][-1], "/run/secrets/open-webui.env"
    places = {secrets: f"{folder}/secrets.env", "/app/backend": str(folder), "python3": PYTHON}
    for place, here in {**places, PAGE_SOCKET: f"{folder}/page"}.items():
        command = command.replace(place, here)
    own = {"SSL_CERT_FILE": f"{folder}/ca.crt", "DATA_DIR": f"{folder}/data", "HOME": str(folder)}
    own |= {"PATH": os.environ["PATH"], "FROM_INIT_PY": "true"}  # as in Open WebUI's own start
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ["/bin/sh", "-c", command], env=service["environment"] | own, stdout=log, stderr=log
        )


@pytest.mark.skipif(not PYTHON, reason="OPEN_WEBUI names no Python with open-webui 0.11.3 (3 GB)")
def test_open_webui_lists_all_models_and_chats_with_each_model(folder: Path) -> None:
    ca = authority(test_tls.NOW, folder / "ca", names=test_tls.NAMES)
    engines = {name: Engine() for name in NAMES}
    replicas = [Replica("one", "127.0.0.1", each.port, each.port) for each in engines.values()]
    pools = tuple(ModelPool(str(each.port), (each,)) for each in replicas)
    models = {name: Model(pool.name, "chat") for name, pool in zip(NAMES, pools, strict=True)}
    page = Replica("page", f"{folder}/page", health=f"{folder}/page")
    door = Proxy(PAGE, free_port(), (page,), "127.0.0.1")
    headers = {"Content-Type": "application/json"}

    def ask(path: str, data: Any = None) -> Answer:
        where = ("127.0.0.1", door.port)
        with closing(HTTPSConnection(*where, context=test_tls.trusting(ca))) as connection:
            connection.request("POST" if data else "GET", path, json.dumps(data), headers)
            return whole(connection.getresponse())

    with address_of(folder / "address", pools, models, (door,), ca) as proxy:
        secrets = {"OPENAI_API_KEY": Secret(KEY), "WEBUI_SECRET_KEY": Secret("of its sessions")}
        url = f"https://127.0.0.1:{proxy.port}/v1"
        process = _open_webui(folder, Page("", url, secrets, ca.pem, WITHOUT_TOOLS))
        try:
            until(lambda: process.poll() or ask("/health").status == 200, "Open WebUI", 300)
            assert process.poll() is None, (folder / "log").read_text()
            assert b"<title>Open WebUI</title>" in ask("/").body
            account = {"name": "a", "email": "a@example.org", "password": "of the account"}
            token = ask("/api/v1/auths/signup", account).data["token"]
            assert ask("/api/v1/auths/signup", account | {"email": "b@example.org"}).status == 403
            headers["Authorization"] = f"Bearer {token}"
            assert [model["id"] for model in ask("/api/models").data["data"]] == NAMES
            for name in NAMES:
                _chats(ask, {"model": name, "messages": MESSAGES})
        finally:
            process.terminate()
            process.wait()
    for name, engine in engines.items():
        asked = [request.json for request in engine.requests if request.body]
        # An engine without a parser of tool calls refuses the tools of Open WebUI's pages.
        assert [(each["model"], "tools" in each) for each in asked] == [(name, False)] * 4


def _chats(ask: Any, chat: dict[str, Any]) -> None:
    """Chat as programs do, and as a page does, which sees the answer in the stored chat."""
    url = "/api/chat/completions"
    assert ask(url, chat | {"stream": False}).data == ANSWER
    done = [b"data: [DONE]\n\n"]
    assert ask(url, chat | {"stream": True}).body == b"".join([*TOKENS, *done])
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    assert ask(url, chat | usage).body == b"".join([*TOKENS, OWN, *done])
    own = {"id": "q", "parentId": None, "childrenIds": list[str](), **MESSAGES[0]}
    page = {"stream": True, "session_id": "s", "parent_id": None, "id": "a", "user_message": own}
    stored = f"/api/v1/chats/{ask(url, chat | page).data['chat_id']}"

    def answer() -> Any:
        return ask(stored).data["chat"]["history"]["messages"]["a"]

    until(lambda: answer().get("done") or answer().get("error"), "the page's answer")
    assert answer()["content"] == 'ab"usage"', answer()
