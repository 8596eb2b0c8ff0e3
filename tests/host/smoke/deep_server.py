"""Run every check against a local fake of vLLM, as the host's program does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkwright.checks.smoke.deep import deep_request
from sparkwright.host.smoke import deep
from sparkwright.host.smoke.check import DeepCheckResult
from sparkwright.host.smoke.client import DeepRequest
from tests.host.lab.fake_server import KEY, NGRAM, Server
from tests.unit.builders import catalog, plan, wanted

#: Settings of the fake: room for every check.
CONTEXT = 24576
SEQUENCES = 8
#: The fake's command line is the recipe's, with n-grams instead of a drafter.
WORDS = (
    *("--max-model-len", str(CONTEXT), "--max-num-seqs", str(SEQUENCES)),
    *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"),
    *("--reasoning-parser", "qwen3", "--speculative-config", NGRAM, "--enable-prefix-caching"),
)


def request(**service: Any) -> DeepRequest:
    """The request for the 35B recipe, with overriding settings of a service."""
    arguments = {"max_model_len": CONTEXT, "max_num_seqs": SEQUENCES}
    settings = {
        "recipe": "qwen36-35b-a3b-heretic-dflash",
        "served_names": ["tiny", "tiny2"],
        **service,
        "arguments": {**arguments, **service.get("arguments", {})},
    }
    ((decided, rendered),) = wanted(plan({"qwen36": settings})).planned_services
    return deep_request(decided, rendered.gate, catalog())


def at(port: int, folder: Path, asked: DeepRequest | None = None, **changes: Any) -> DeepRequest:
    """A request for the server on a port, with its key in a directory."""
    secrets = folder / "secrets.env"
    secrets.write_text(f"VLLM_API_KEY={KEY}\n")
    own: dict[str, Any] = {"address": "127.0.0.1", "port": port, "secrets": str(secrets)}
    return replace(asked or request(), **own, **changes)


def ask(
    server: Server, folder: Path, asked: DeepRequest, **changes: Any
) -> dict[str, DeepCheckResult]:
    """Every check's result, by name."""
    limits = {"boot_seconds": 1, "first_answer_seconds": 20, "unit": "sparkwright-none.service"}
    answer = deep.run(replace(at(server.port, folder, asked), **{**limits, **changes}))
    return {check.name: check for check in answer.checks}
