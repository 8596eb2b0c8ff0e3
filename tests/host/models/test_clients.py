"""Clients at the address: LiteLLM's own (``make clients`` installs it), and the requests of Open
WebUI 0.12.4 (open_webui/routers/openai.py), whose package takes gigabytes with its dependencies.
"""

import json
from contextlib import closing
from typing import Any

import pytest

from tests.host.models.address_process import ANSWER, CHAT, OWN, TOKENS, Address
from tests.host.models.test_serve import address
from tests.host.proxy.haproxy import until

__all__ = ["address"]
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


def test_requests_of_open_webui_list_all_models_and_chat_with_each_model(address: Address) -> None:
    headers = {
        "Authorization": "Bearer laptop", "Accept": "*/*", "Accept-Encoding": "gzip, deflate, br",
        "User-Agent": "Python/3.11 aiohttp/3.14.5",
    }  # fmt: skip
    with closing(address.connect()) as connection:  # as a session of aiohttp, one connection
        connection.request("GET", "/v1/models", headers=headers)
        listed = [model["id"] for model in json.loads(connection.getresponse().read())["data"]]
        assert listed == NAMES
        headers["Content-Type"] = "application/json"
        for name in listed:
            chat = {"stream": True, "model": name, "messages": MESSAGES, "temperature": 0.7}
            for more, last in ({}, b""), ({"stream_options": {"include_usage": True}}, OWN):
                connection.request("POST", CHAT, json.dumps(chat | more), headers)
                answer = connection.getresponse()
                assert answer.getheader("content-type") == "text/event-stream"
                assert answer.read() == b"".join([*TOKENS, last, b"data: [DONE]\n\n"])
            title = {"model": name, "messages": MESSAGES, "stream": False, "max_tokens": 1000}
            connection.request("POST", CHAT, json.dumps(title), headers)
            assert json.loads(connection.getresponse().read()) == ANSWER
    assert _asked(address) == [{"small"}, {"org/large"}]
