"""The one line that says why a service ended, out of what vLLM printed."""

from __future__ import annotations

import pytest

from sparkwright.host.lib import journal
from tests.unit.builders import ROOT

FAILED = ROOT / "tests/fixtures/vllm/h200-0.24.0/failed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bad-parser", "KeyError: 'invalid tool call parser: nope (chose from {"),
        ("cache-empty", "SyntaxError: invalid syntax"),
        ("cache-noise", "UnicodeDecodeError: 'utf-8' codec can't decode byte"),
        ("kv-none", "ValueError: No available memory for the cache blocks."),
        ("memory-taken", "ValueError: Free memory on device cuda:0 (103.15/139.8 GiB)"),
        ("no-gpu", "AssertionError: DP adjusted local rank 0 is out of bounds for 0 devices."),
        ("oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 192.00 MiB."),
        ("port-in-use", "OSError: [Errno 98] Address already in use"),
        ("unknown-argument", "error: unrecognized arguments: --no-such-flag"),
        ("weights-cut", "safetensors._safetensors_rust.SafetensorError: Error while deserializing"),
        ("weights-gone", "RuntimeError: Cannot find any model weights with `/models/gone`"),
        ("worker-killed", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered"),
    ],
)
def test_the_engines_own_error_is_named(name: str, said: str) -> None:
    """vLLM on a GPU ends with its API server's traceback, which only points to the engine's."""
    cause = journal.cause((FAILED / f"{name}.log").read_text().splitlines())
    assert cause is not None
    assert cause.startswith(said)
    assert len(cause) <= 240


def test_what_is_wrong_with_an_argument_is_said_by_pydantic_in_its_second_line() -> None:
    said = [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, User-specified max_model_len (40960) is greater than the derived one",
    ]
    assert journal.cause(said) == said[1].strip()


def test_an_error_that_is_only_quoted_is_none() -> None:
    assert (
        journal.cause(["WARNING this can cause errors like `OSError: [Errno 24] Too many"]) is None
    )
    assert journal.cause(["    raise RuntimeError(", "Application startup complete."]) is None
