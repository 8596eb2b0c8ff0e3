"""The line of an engine's log with the reason why a service ended."""

import json

from sparkwright.host.lib import journal
from tests.tables import Tables
from tests.unit.builders import ROOT

cases = Tables(__file__)

FAILED = ROOT / "tests/fixtures/vllm/h200-0.24.0/failed"


@cases("name", "message")
def test_the_engines_own_error_is_named(name: str, message: str) -> None:
    """vLLM on a GPU ends with its API server's traceback, which only points to the engine's
    traceback.
    """
    cause = journal.cause((FAILED / f"{name}.log").read_text().splitlines())
    assert cause is not None
    assert cause.startswith(message)
    assert len(cause) <= 240


@cases("name", "message")
def test_an_error_of_llama_server_is_named(name: str, message: str) -> None:
    """The last line of llama-server only reports its end; lines before it come from its callers."""
    failures = json.loads((ROOT / "tests/fixtures/llamacpp/0.7.0/failures.json").read_text())
    cause = journal.cause(failures[name]["log"] * 3)
    assert cause is not None
    assert message in cause


def test_pydantics_second_line_is_the_error() -> None:
    texts = [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        "  Value error, User-specified max_model_len (40960) is greater than the derived one",
    ]
    assert journal.cause(texts) == texts[1].strip()


def test_a_quoted_error_is_ignored() -> None:
    assert (
        journal.cause(["WARNING this can cause errors like `OSError: [Errno 24] Too many"]) is None
    )
    assert journal.cause(["    raise RuntimeError(", "Application startup complete."]) is None
