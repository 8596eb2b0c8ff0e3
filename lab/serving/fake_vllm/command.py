"""`vllm serve`: from the command line to a running server, with vLLM's log."""

import argparse
import os
import signal
import sys
import threading
import time
from typing import NoReturn

from . import log
from .api import Api
from .asgi import Config, DirectServer, bind
from .compiled import load_or_compile
from .faults import read_faults
from .gpu_memory import find_gpu
from .identity import AEON, Identity, read_identity
from .model import Model, read_weights
from .option_table import Table, load_table
from .rank_link import gather
from .refusal import Refusal, print_refusal
from .serve_options import given, parse
from .server_settings import check_frontend, read_settings

_GRACE_SECONDS = 5.0
"""Grace period of running requests on SIGTERM, unless --shutdown-timeout is longer."""


def main(parts: list[str]) -> int:
    """Run `vllm WORDS`; return the exit status (2 for refused arguments, by SystemExit)."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    identity = read_identity()
    table = load_table(identity)
    try:
        arguments = parse(parts, table)
    except (ValueError, OSError) as error:
        print_refusal(Refusal(type(error).__name__, str(error)))
        return 1
    if arguments.subparser != "serve":
        sys.stderr.write("fake vllm: only `vllm serve` is here\n")
        return 2
    try:
        return _serve(arguments, table, identity)
    except Refusal as refusal:
        print_refusal(refusal)
        return 1


def _serve(arguments: argparse.Namespace, table: Table, identity: Identity) -> int:
    begun = time.monotonic()
    log.raw(
        f"FAKE for vLLM {table.version} (sparkwright lab): no model is computed; "
        "answers come from a hash of the prompt"
    )
    faults = read_faults(identity.fault)
    if identity.fault:
        log.raw(f"FAKE: fault asked for: {identity.fault}")
    boot_seconds = float(os.environ.get("FAKE_VLLM_BOOT_SECONDS") or "0.5")
    version = table.version
    log.server("INFO", "utils.py:299", f"vLLM API server version {version} (fake)")
    # The real vLLM prints an --api-key in clear here, and so does its fake.
    log.server("INFO", "utils.py:233", f"non-default args: {given(arguments, table)}")
    check_frontend(arguments, table)
    # The port is opened at once, as in vLLM, so that a used port fails early.
    address = arguments.uds or (arguments.host or "0.0.0.0", arguments.port)
    listener = None if arguments.headless else bind(address)
    time.sleep(min(0.5, boot_seconds / 4))
    gpu = find_gpu(aeon=identity.flavour == AEON)
    log.server("INFO", "__init__.py:216", f"Automatically detected platform cuda ({gpu.name}).")
    settings = read_settings(arguments, table, identity)
    log.server("INFO", "model.py:1561", f"Using max model len {settings.max_model_len}")
    log.engine("INFO", "core.py:93", f"Initializing a V1 LLM engine (v{version}, fake)")
    faults.before_loading()
    ranks = gather(arguments)
    _load(settings.model)
    if settings.drafter:
        log.engine("INFO", "gpu_model_runner.py:4412", "Loading drafter model...")
        _load(settings.drafter)
    if faults.never_healthy:
        while True:
            log.engine("INFO", "core.py:210", "FAKE: never becomes healthy, as asked for")
            time.sleep(30)
    load_or_compile(str(settings.model.path))
    log.engine("INFO", "gpu_worker.py:508", "Available KV cache memory: 67.1 GiB (fake)")
    time.sleep(max(0.0, boot_seconds - (time.monotonic() - begun)))
    took = time.monotonic() - begun
    log.engine("INFO", "core.py:282", f"init engine took {took:.2f} seconds")
    if listener is None or ranks is None:
        log.server("INFO", "serve.py:224", "FAKE: a follower; its head answers")
        while True:
            signal.pause()
    at = listener.getsockname()
    where = f"unix:{at}" if isinstance(at, str) else f"http://{at[0]}:{at[1]}"
    log.server("INFO", "api_server.py:606", f"Starting vLLM server on {where}")
    if faults.crash_after is not None:
        crash = threading.Timer(faults.crash_after, _crash)
        crash.daemon = True
        crash.start()
    config = Config(Api(settings, identity, faults, ranks))
    DirectServer(config, listener, max(_GRACE_SECONDS, settings.shutdown_timeout)).run()
    return 0


def _load(model: Model) -> None:
    begun = time.monotonic()

    def progress(done: int, count: int) -> None:
        log.raw(
            f"Loading safetensors checkpoint shards: {100 * done // count:3d}% Completed | "
            f"{done}/{count} [{time.monotonic() - begun:05.2f}s]"
        )

    log.engine("INFO", "gpu_model_runner.py:4395", f"Starting to load model {model.path}...")
    size = read_weights(model, progress)
    took = time.monotonic() - begun
    log.engine("INFO", "default_loader.py:384", f"Loading weights took {took:.2f} seconds")
    log.engine("INFO", "default_loader.py:385", f"FAKE: {size} bytes read and left unused")


def _crash() -> NoReturn:
    log.engine("ERROR", "core.py:1240", "EngineCore encountered a fatal error.")
    log.engine("ERROR", "core.py:1240", "torch.AcceleratorError: CUDA error: an illegal memory")
    log.engine("ERROR", "core.py:1240", "access was encountered (FAKE: asked for)")
    log.raw_error("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.")
    os._exit(1)


def _leave(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)
