"""Asking a local stand-in for everything, as the host's program does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkwright.host.smoke import deep
from sparkwright.smoke.deep import deep_request
from tests.lab.test_serving import KEY, NGRAM, Server
from tests.unit.builders import catalog, plan, wanted

#: Of the stand-in: room for every check.
CONTEXT = 24576
SEQUENCES = 8
#: The stand-in's command line, as the recipe's; n-grams instead of a drafter of its own.
WORDS = (
    *("--max-model-len", str(CONTEXT), "--max-num-seqs", str(SEQUENCES)),
    *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"),
    *("--reasoning-parser", "qwen3", "--speculative-config", NGRAM, "--enable-prefix-caching"),
)


def request(**service: Any) -> dict[str, Any]:
    """What the host is told of the 35B recipe, with settings of a service's over it."""
    arguments = {"max_model_len": CONTEXT, "max_num_seqs": SEQUENCES}
    settings = {
        "recipe": "qwen36-35b-a3b-heretic-dflash",
        "served_names": ["tiny", "tiny2"],
        **service,
        "arguments": {**arguments, **service.get("arguments", {})},
    }
    (release,) = wanted(plan({"qwen36": settings})).releases
    return deep_request(release, catalog())


def ask(server: Server, place: Path, told: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Every check's result, by name."""
    secrets = place / f"secrets-{server.port}.env"
    secrets.write_text(f"VLLM_API_KEY={KEY}\n")
    own = {"address": "127.0.0.1", "port": server.port, "secrets": str(secrets)}
    limits = {"boot_seconds": 1, "first_answer_seconds": 20, "unit": "sparkwright-none.service"}
    answer = deep.run({**told, **own, **limits, **changes})
    return {one["name"]: one for one in answer["checks"]}
