"""Reasons of a failed start of vLLM, and the last lines of its output.

vLLM ends a failed start with a Python traceback, from the API server or from its engine process.
The fake prints the same last lines, which users and programs search for; the frames in between are
left out.
"""

from . import log

VALIDATION = "pydantic_core._pydantic_core.ValidationError"


class Refusal(Exception):
    """A refused start, as with the real vLLM.

    kind: the exception's name as a traceback prints it; text: its message, possibly of several
    lines; engine: whether the engine process raised the exception, and not the API server.
    """

    def __init__(self, kind: str, text: str, *, engine: bool = False) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text
        self.engine = engine


def invalid(model: str, field: str, message: str) -> Refusal:
    """A pydantic refusal of one field of a config class, such as `CacheConfig`."""
    return Refusal(VALIDATION, f"1 validation error for {model}\n{field}\n  {message}")


def invalid_value(model: str, message: str) -> Refusal:
    """A pydantic refusal by a validator of the whole config class."""
    return Refusal(
        VALIDATION,
        f"1 validation error for {model}\n  Value error, {message} [type=value_error]",
    )


def print_refusal(refusal: Refusal) -> None:
    """Print the end of the traceback, as the failing process would."""
    if refusal.engine:
        log.engine("ERROR", "core.py:1231", "EngineCore failed to start.")
        log.engine("ERROR", "core.py:1231", "Traceback (most recent call last):")
        for line in f"{refusal.kind}: {refusal.text}".splitlines():
            log.engine("ERROR", "core.py:1231", line)
        log.raw_error("Traceback (most recent call last):")
        log.raw_error(
            "RuntimeError: Engine core initialization failed. See root cause above. "
            "Failed core proc(s): {}"
        )
        return
    log.raw_error("Traceback (most recent call last):")
    log.raw_error('  File "/usr/local/bin/vllm", line 8, in <module>')
    log.raw_error("    sys.exit(main())")
    for line in f"{refusal.kind}: {refusal.text}".splitlines():
        log.raw_error(line)
