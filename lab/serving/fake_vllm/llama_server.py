"""A fake for llama.cpp's ``llama-server``: arguments, routes, metrics, log and GGUF files.

The fake was made from captures of build 11669 (tests/fixtures/llamacpp). OpenAI's answers, faults
and prompts equal the fake vLLM's; the fake has no drafter and no vectors.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from . import log
from .api import Api, as_json, read_body
from .asgi import Config, DirectServer
from .errors import ApiError
from .faults import read_faults
from .gpu_memory import find_gpu
from .http_server import Request, Response
from .identity import read_identity
from .model import Model
from .rank_link import Ranks
from .refusal import Refusal
from .server_settings import DEFAULT_MAX_MODEL_LEN, Settings
from .sglang import SAMPLE, parser
from .text import tokens_of

#: Build whose arguments the fake accepts, whatever the image's tag is.
BUILD = "b11669"
#: llama.cpp's metric -> the fake vLLM's metric of the same count; None without speculation.
METRICS = {
    "prompt_tokens_total": "prompt_tokens_total", "requests_deferred": "num_requests_waiting",
    "requests_processing": "num_requests_running", "n_decode_total": "iteration_tokens_total_count",
    "prompt_tokens_cached_total": "prefix_cache_hits_total",
    "tokens_predicted_total": "generation_tokens_total",
    "spec_decode_num_drafts_total": None, "spec_decode_num_draft_tokens_total": None,
    "spec_decode_num_accepted_tokens_total": None,
}  # fmt: skip
#: All routes of this fake; OpenAI's routes are the same as in the fake vLLM.
ROUTES = ("/health", "/v1/health", "/metrics", "/v1/models", "/props", "/slots", "/tokenize",
          "/v1/chat/completions", "/v1/completions", "/v1/messages")  # fmt: skip
_BEGUN = time.monotonic()


class LlamaApi(Api):
    """Routes of llama-server: OpenAI's routes as in the fake vLLM, and llama.cpp's own routes."""

    guarded, unguarded = ("/",), ("/", "/health", "/v1/health")
    rejection = b'{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}'

    def __init__(self, arguments: argparse.Namespace, settings: Settings, *parts: Any) -> None:
        super().__init__(settings, *parts)
        names, length = self._backend.names, settings.max_model_len
        slots = [{"id": number, "n_ctx": length} for number in range(settings.max_num_seqs)]
        card = {"id": names[0], "aliases": names, "object": "model", "created": int(time.time()),
                "owned_by": "llamacpp", "meta": {"n_ctx": length}}  # fmt: skip
        self._answers = {
            "/health": {"status": "ok"}, "/v1/health": {"status": "ok"}, "/slots": slots,
            "/props": {"total_slots": len(slots), "model_path": arguments.model},
            "/v1/models": {"object": "list", "data": [card]},
        }  # fmt: skip
        self._routes["GET"] |= dict.fromkeys(self._answers, self._answered)
        closed = {f"/{name}" for name in ("metrics", "slots") if not getattr(arguments, name)}
        for routes in self._routes.values():
            for path in {*routes} - ({*ROUTES} - closed):
                del routes[path]
        # llama-server answers to any name, and reports the first name.
        self._backend.model_of = lambda body: names[0]  # type: ignore[method-assign]

    async def _answered(self, request: Request) -> Response:
        return as_json(self._answers[request.path])

    async def _too_long(self, error: ApiError) -> Response:
        limit = self._backend.settings.max_model_len
        text = f"request exceeds the available context size ({limit} tokens), try increasing it"
        return await super()._too_long(ApiError(400, "exceed_context_size_error", text))

    async def _tokenize(self, request: Request) -> Response:
        return as_json({"tokens": [len(word) for word in tokens_of(read_body(request)["content"])]})

    async def _metrics(self, request: Request) -> Response:
        values: Counter[str | None] = Counter()
        for name, _, value in SAMPLE.findall(self._backend.metrics.render()):
            values[name.removeprefix("vllm:")] += int(float(value))
        # llama-server's prompt tokens exclude cached tokens.
        values["prompt_tokens_total"] -= values["prefix_cache_hits_total"]
        lines = [f"llamacpp:{name} {values[own]}\n" for name, own in METRICS.items()]
        return Response(200, "".join(lines).encode(), content_type="text/plain; version=0.0.4")


def say(text: str) -> None:
    """Print a line of llama-server's log."""
    minutes, seconds = divmod(time.monotonic() - _BEGUN, 60)
    print(f"{minutes:.0f}.{seconds:06.3f}.000", text, file=sys.stderr, flush=True)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The configuration of a server, from its arguments and its file. Raises Refusal."""
    path, slots = Path(arguments.model), arguments.parallel
    data = path.read_bytes() if path.is_file() else b""
    if not data.startswith(b"GGUF"):
        raise Refusal("llama_model_load", f"error loading model: failed to load model from {path}")
    # -1 starts four slots, which share one KV cache.
    whole, count = arguments.ctx_size or DEFAULT_MAX_MODEL_LEN, slots if slots > 0 else 4
    thinks = arguments.jinja and b"<think>" in data
    return Settings(
        names=arguments.alias.split(","),
        keys=[key for key in os.environ.get("LLAMA_API_KEY", "").split(",") if key],
        model=Model(arguments.model, {}),
        max_model_len=whole if arguments.kv_unified or slots < 0 else whole // count,
        max_num_seqs=count,
        reasoning_parser="qwen3" if thinks else None,
        auto_tools=arguments.jinja,
        prefix_caching=arguments.cache_prompt,
        kv_cache_dtype=arguments.cache_type_k,
    )


def main(_: list[str]) -> int:
    """Serve with the command line's arguments; return the exit status."""
    log.uvicorn = lambda text: None
    identity = read_identity()
    arguments = parser(f"llamacpp/{BUILD}", "llama-server").parse_args()
    say(f"I FAKE for llama-server {identity.version} (sparkwright lab): no model is computed")
    say(f"I srv    load_model: loading model '{arguments.model}'")
    faults = read_faults(identity.fault)
    try:
        find_gpu(aeon=False)
        faults.before_loading()
        settings = settings_of(arguments)
    except Refusal as refusal:
        say(f"E {refusal}")
        say("E srv  llama_server: exiting due to model loading error")
        return 1
    slots = f"n_slots = {settings.max_num_seqs}, n_ctx_slot = {settings.max_model_len}"
    say(f"I srv    load_model: initializing, {slots}")
    time.sleep(float(os.environ.get("FAKE_VLLM_BOOT_SECONDS") or "0.5"))
    while faults.never_healthy:
        time.sleep(30)
    say("I srv  llama_server: model loaded")
    say(f"I srv  llama_server: listening on {arguments.host}")
    api = LlamaApi(arguments, settings, identity, faults, Ranks({}))
    socket = arguments.host if arguments.host.endswith(".sock") else ""
    DirectServer(Config(api, host=arguments.host, port=arguments.port, uds=socket)).run()
    say("I srv    operator(): operator(): cleaning up before exit...")
    return 0
