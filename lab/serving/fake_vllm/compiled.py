"""Fake cache of torch.compile: one file below VLLM_CACHE_ROOT, with the log lines of 0.24.0.

A manipulated or truncated cache ends the engine, as a broken artefact does.
"""

import hashlib
import os
import sys
from pathlib import Path

from . import log

_TEXT = "compiled by the lab's engine\n"


def load_or_compile(model: str) -> None:
    """Load the compiled graph of a model, or compile and store it."""
    root = Path(os.environ.get("VLLM_CACHE_ROOT") or Path.home() / ".cache/vllm")
    key = hashlib.sha256(model.encode()).hexdigest()[:10]
    path = root / "torch_compile_cache" / key / "graph"
    where = f"Using cache directory: {path.parent} for vLLM's torch.compile"
    log.engine("INFO", "backends.py:1089", where)
    compile_range = "compile range (1, 8192)"
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_TEXT, encoding="utf-8")
        except OSError as error:
            log.engine("WARNING", "backends.py:1102", f"the cache is not kept: {error}")
        log.engine("INFO", "backends.py:393", f"Compiling a graph for {compile_range} takes 0.10 s")
    elif path.read_text(encoding="utf-8") == _TEXT:
        reason = f"Directly load the compiled graph(s) for {compile_range} from the cache"
        log.engine("INFO", "backends.py:292", f"{reason}, took 0.010 s")
    else:
        log.raw_error("_pickle.UnpicklingError: invalid load key (from the compiled graph)")
        sys.exit(1)
