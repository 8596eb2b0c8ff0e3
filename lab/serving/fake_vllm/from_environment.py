"""FAKE for the entry point of vllm-dflash: environment variables to a `vllm serve` command.

Names and defaults are as on the image's card. Like the real program, the fake trusts remote code,
puts VLLM_API_KEY on the command line if it is set, prints the command line, and starts `vllm` by
its name.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

_ARGUMENTS = {
    "--max-model-len": ("MAX_MODEL_LEN", "65536"),
    "--max-num-seqs": ("MAX_NUM_SEQS", "16"),
    "--max-num-batched-tokens": ("MAX_NUM_BATCHED_TOKENS", "32768"),
    "--gpu-memory-utilization": ("GPU_MEMORY_UTILIZATION", "0.85"),
    "--attention-backend": ("ATTENTION_BACKEND", "flash_attn"),
}
_TURBOQUANT = {
    "TQ_MODE": ("off", "capture_only", "hybrid", "full_tq"),
    "TQ_KEY_BITS": ("3", "4"),
    "TQ_VALUE_BITS": ("2", "3", "4"),
}


def arguments(environment: Mapping[str, str]) -> list[str]:
    """The command in the variables.

    Raises:
        ValueError: names missing and invalid variables.
    """
    missing = [name for name in ("MODEL_PATH", "DFLASH_DRAFTER") if not environment.get(name)]
    if missing:
        raise ValueError(f"{' and '.join(missing)} must be set")
    if environment.get("ENABLE_TURBOQUANT") == "1":
        if not Path("/etc/turboquant-fake").is_file():
            raise ValueError("ENABLE_TURBOQUANT=1, and this image has no TurboQuant")
        for name, expected in _TURBOQUANT.items():
            if (environment.get(name) or expected[-1]) not in expected:
                raise ValueError(f"{name} must be one of {', '.join(expected)}")
    model, drafter = environment["MODEL_PATH"].rstrip("/"), environment["DFLASH_DRAFTER"]
    if not Path(drafter).is_dir():
        raise ValueError(f"{drafter}: not here, and the hub can't be reached to download it")
    tokens = environment.get("DFLASH_NUM_SPEC_TOKENS") or "15"
    if not tokens.isdigit():
        raise ValueError(f"DFLASH_NUM_SPEC_TOKENS is not a number: {tokens}")
    speculative = {"method": "dflash", "model": drafter, "num_speculative_tokens": int(tokens)}
    result = ["serve", model, "--host", "0.0.0.0", "--port", "8000"]
    result += ["--served-model-name", environment.get("SERVED_MODEL_NAME") or Path(model).name]
    for flag, (name, default) in _ARGUMENTS.items():
        result += [flag, environment.get(name) or default]
    result += ["--trust-remote-code", "--speculative-config", json.dumps(speculative)]
    if key := environment.get("VLLM_API_KEY"):
        result += ["--api-key", key]
    # The variable comes last, so that its arguments win.
    try:
        return result + shlex.split(environment.get("EXTRA_ARGS", ""))
    except ValueError as error:
        raise ValueError(f"EXTRA_ARGS: {error}") from None


def main(_: list[str]) -> int:
    """Serve with the arguments in the environment."""
    try:
        serve = arguments(os.environ)
    except ValueError as error:
        print(f"FAKE entry point: {error}", file=sys.stderr)
        return 1
    print(f"[dflash] Starting: vllm {shlex.join(serve)}", flush=True)
    return os.execvp("vllm", ["vllm", *serve])
