"""A fake for SGLang, in the image as ``sglang.launch_server``: arguments, routes, metrics and log.

The fake was made from SGLang's source (0.5.15 to 0.5.23: server_args.py, http_server.py,
metrics_collector.py, model_runner.py), not from captures: no real SGLang has run here. OpenAI's
routes, faults, ranks and prompts are the same as in the fake for vLLM.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from . import log
from .api import Api
from .asgi import Config, Server
from .faults import read_faults
from .gpu_memory import find_gpu
from .http_server import Request, Response
from .identity import read_identity
from .model import Model, open_model, read_weights
from .option_values import human_readable_int
from .rank_link import Ranks, gather
from .refusal import Refusal
from .server_settings import DEFAULT_MAX_MODEL_LEN, Settings
from .speculation import Speculation
from .text import compact

TABLES = Path(__file__).resolve().parent.parent
#: The fake vLLM's own metric -> SGLang's metric with the same count.
METRICS = {
    f"vllm:{own}": f"sglang:{name}"
    for own, name in {
        "generation_tokens_total": "generation_tokens_total",
        "prompt_tokens_total": "prompt_tokens_total", "num_requests_running": "num_running_reqs",
        "iteration_tokens_total_sum": "realtime_tokens_total", "kv_cache_usage_perc": "token_usage",
        "num_requests_waiting": "num_queue_reqs", "prefix_cache_hits_total": "cached_tokens_total",
        "num_preemptions_total": "num_retracted_requests_total",
        "spec_decode_num_drafts_total": "spec_verify_calls_total",
        "request_success_total": "num_requests_total",
        **{
            f"{own}_seconds{part}": f"{name}_seconds{part}"
            for own, name in (("time_to_first_token", "time_to_first_token"),
                              ("inter_token_latency", "inter_token_latency"),
                              ("e2e_request_latency", "e2e_request_latency"),
                              ("request_queue_time", "queue_time"))
            for part in ("_sum", "_count", "_bucket")
        },
    }.items()
}  # fmt: skip
SAMPLE = re.compile(r"^([a-z_:]+)(\{[^}]*\})? (\S+)$", re.MULTILINE)
#: Routes that change the server or reveal its arguments: no proxy passes them.
ADMIN = (
    "/abort_request", "/flush_cache", "/release_memory_occupation", "/start_profile",
    "/update_weights_from_disk",
)  # fmt: skip


def parser(table_name: str, program: str) -> argparse.ArgumentParser:
    """The parser of a version, from a table that the engine printed."""
    table = json.loads((TABLES / f"{table_name}.json").read_text(encoding="utf-8"))
    seconds: dict[str, list[str]] = {}
    for second, name in table["aliases"].items():
        seconds.setdefault(name, []).append(second)
    kinds: dict[str, Any] = {"int": int, "float": float, "size": human_readable_int}
    result = argparse.ArgumentParser(prog=program, add_help=False)
    for name, (kind, choices, negatable, default) in table["arguments"].items():
        flags = [f"--{each.replace('_', '-')}" for each in (name, *seconds.get(name, ()))]
        options: dict[str, Any] = {"dest": name, "default": default}
        if kind == "flag":
            boolean = argparse.BooleanOptionalAction if negatable else "store_true"
            result.add_argument(*flags, action=boolean, **options)
        else:
            several = {"nargs": "+"} if kind == "many" else {}
            options |= {"type": kinds.get(kind, str), "choices": choices or None, **several}
            result.add_argument(*flags, **options)
    return result


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The configuration of an engine, or the Refusal that SGLang ends with."""
    model = open_model(arguments.model_path)
    own = model.max_position_embeddings
    asked = arguments.context_length
    if asked and own and asked > own:
        text = f"User-specified context_length ({asked}) is greater than the derived"
        raise Refusal("ValueError", f"{text} context_length ({own}).")
    algorithm, drafter = arguments.speculative_algorithm, arguments.speculative_draft_model_path
    drafts = (algorithm or "").lower(), drafter, arguments.speculative_num_draft_tokens or 4, None
    return Settings(
        names=[arguments.served_model_name or arguments.model_path],
        keys=[],  # launch.py requires the key
        model=model,
        max_model_len=asked or own or DEFAULT_MAX_MODEL_LEN,
        max_num_seqs=arguments.max_running_requests or 48,
        reasoning_parser=arguments.reasoning_parser,
        auto_tools=bool(arguments.tool_call_parser),
        prefix_caching=not arguments.disable_radix_cache,
        gpu_memory_utilization=arguments.mem_fraction_static or 0.88,
        kv_cache_dtype=arguments.kv_cache_dtype,
        speculation=Speculation(*drafts) if algorithm else None,
        drafter=open_model(drafter) if drafter else None,
        pooling=bool(arguments.is_embedding),
    )


class SglangApi(Api):
    """Routes of SGLang: OpenAI's routes as in the fake vLLM, and SGLang's own routes."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        get, post = self._routes["GET"], self._routes["POST"]
        for path in ("/version", "/load"):
            del get[path]
        for path in ("/v1/messages", "/invocations", "/inference/v1/generate"):
            post.pop(path, None)
        get |= {"/server_info": self._info, "/health_generate": self._empty}
        post |= dict.fromkeys(ADMIN, self._empty)
        # SGLang accepts any name of a model.
        names = self._backend.names
        self._backend.model_of = lambda body: str(body.get("model") or names[0])  # type: ignore[method-assign]

    async def _info(self, _: Request) -> Response:
        body = {"version": self._backend.version, "served_model_name": self._backend.names[0]}
        return Response(200, compact(body).encode(), "application/json")

    def _card(self, name: str, now: int) -> dict[str, Any]:
        length = self._backend.settings.max_model_len
        return {
            "id": name, "object": "model", "created": now, "owned_by": "sglang", "root": name,
            "parent": None, "max_model_len": length,
        }  # fmt: skip

    async def _metrics(self, request: Request) -> Response:
        response = await super()._metrics(request)
        assert isinstance(response.body, bytes)
        lines = [
            f"{METRICS[name]}{labels} {value}\n"
            for name, labels, value in SAMPLE.findall(response.body.decode())
            if name in METRICS
        ]
        response.body = "".join(lines).encode()
        return response

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer as an application of ASGI's."""
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        body = (await receive())["body"]
        response = await self.handle(Request(scope["method"], scope["path"], headers, body))
        kind = {"content-type": response.content_type} if response.content_type else {}
        given = [
            (name.encode(), value.encode()) for name, value in {**kind, **response.headers}.items()
        ]
        await send({"type": "http.response.start", "status": response.status, "headers": given})
        if isinstance(response.body, bytes):
            await send({"type": "http.response.body", "body": response.body})
            return
        async with contextlib.aclosing(response.body) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def say(text: str) -> None:
    """Print a line of SGLang's log."""
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}", flush=True)


def main(_: list[str]) -> int:
    """Serve with the command line's arguments; return the exit status."""
    log.uvicorn = lambda text: say(f"INFO:     {text}")
    identity = read_identity()
    arguments = parser(f"sglang/{identity.version}", "sglang serve").parse_args()
    say(f"FAKE for SGLang {identity.version} (sparkwright lab): no model is computed")
    # The real server logs every argument, including an API key; this fake logs the given arguments.
    say(f"server_args=ServerArgs({' '.join(sys.argv[1:])})")
    faults = read_faults(identity.fault)
    seconds = float(os.environ.get("FAKE_VLLM_BOOT_SECONDS") or "0.5")
    try:
        say(f"Platform cuda ({find_gpu(aeon=False).name}).")
        settings = settings_of(arguments)
        say("Init torch distributed begin.")
        faults.before_loading()
        ranks = _joined(arguments)
        for model in filter(None, (settings.model, settings.drafter)):
            _load(model)
    except Refusal as refusal:
        say(f"Scheduler hit an exception: {refusal}")
        say("Received sigquit from a child process. It usually means the child failed.")
        return 1
    say("KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 1000000 (fake)")
    say("Capture decode CUDA graph begin. avail mem=20.00 GB (fake)")
    time.sleep(seconds)
    if ranks is None:
        signal.pause()
        return 0
    while faults.never_healthy:
        time.sleep(30)
    say("The server is fired up and ready to roll!")
    api = SglangApi(settings, identity, faults, ranks)
    Server(Config(api, host=arguments.host, port=arguments.port)).run()
    return 0


def _joined(arguments: argparse.Namespace) -> Ranks | None:
    address, _, port = (arguments.dist_init_addr or ":0").rpartition(":")
    return gather(
        argparse.Namespace(
            nnodes=arguments.nnodes,
            node_rank=arguments.node_rank,
            master_addr=address,
            master_port=int(port),
        )
    )


def _load(model: Model) -> None:
    say("Load weight begin. avail mem=110.00 GB (fake)")
    size = read_weights(model, lambda done, count: None)
    say(f"Load weight end. elapsed=0.10 s, mem usage={size / 1e9:.2f} GB.")
