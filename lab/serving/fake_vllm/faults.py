"""Faults on request, for tests of programs that watch, prove and roll out a service.

FAKE_VLLM_FAULT or /etc/fake-vllm-fault names the faults, separated by commas:

    never-healthy         never becomes healthy
    wedge                 answers /health while generations hang
    oom                   runs out of GPU memory while loading
    crash-after=SECONDS   dies this long after it became healthy
    garbage               answers `!!!!` to every request
    blind                 answers `!!!!` to images, as with a vision tower that was not loaded
    no-sight              describes images wrongly
    no-alias              serves only the first of its names
    open-route            /v1/completions needs no key
    never-stops           plain chats run on until their budget ends
    no-completions        /v1/completions gives empty texts
    no-stream             holds a stream back and sends it all at once
    no-usage              streams end without their usage
    always-thinks         thinks although enable_thinking is false
    leaks-thoughts        the content contains the reasoning
    no-tools              the content contains a tool's call, as with a wrong parser
    ignores-schema        answers with prose to a request for JSON by a schema
    forgets=TOKENS        uses only this many of a prompt's last tokens
    hangs-at-limit        never answers a prompt over the context
    breaks-at-limit       answers a prompt over the context with a 500
    no-drafts             its drafter is not used
    no-acceptance         no draft is accepted
    no-prefix-hits        finds nothing in its prefix cache
    short-vectors         gives vectors of half the model's length
    wrong-order           ranks the wrong document first
    wrong-scores          gives the highest score to the wrong document
    deaf                  transcribes wrong words
    silent-speech         generates silent speech
    blank-picture         generates an empty picture
    drops-at-concurrency  fails requests once more than half of --max-num-seqs run
"""

import asyncio
from dataclasses import dataclass, fields

from .errors import ApiError
from .refusal import Refusal


@dataclass(frozen=True)
class Faults:
    """Faults of the fake. crash_after is in seconds, and forgets is in tokens; None turns either
    fault off.
    """

    never_healthy: bool = False
    wedge: bool = False
    oom: bool = False
    crash_after: float | None = None
    garbage: bool = False
    blind: bool = False
    no_sight: bool = False
    no_alias: bool = False
    open_route: bool = False
    never_stops: bool = False
    no_completions: bool = False
    no_stream: bool = False
    no_usage: bool = False
    always_thinks: bool = False
    leaks_thoughts: bool = False
    no_tools: bool = False
    ignores_schema: bool = False
    forgets: float | None = None
    hangs_at_limit: bool = False
    breaks_at_limit: bool = False
    no_drafts: bool = False
    no_acceptance: bool = False
    no_prefix_hits: bool = False
    short_vectors: bool = False
    wrong_order: bool = False
    wrong_scores: bool = False
    deaf: bool = False
    silent_speech: bool = False
    blank_picture: bool = False
    drops_at_concurrency: bool = False

    async def before_generation(self) -> None:
        """Hang forever with the fault `wedge`."""
        if self.wedge:
            await asyncio.Event().wait()

    async def over_the_context(self) -> None:
        """Hang or raise ApiError with status 500, instead of refusing a prompt that is too long."""
        if self.hangs_at_limit:
            await asyncio.Event().wait()
        if self.breaks_at_limit:
            raise engine_dead()

    def while_running(self, running: float, seats: int) -> None:
        """For `drops-at-concurrency`: ApiError (status 500) if over half of --max-num-seqs run."""
        if self.drops_at_concurrency and running > seats / 2:
            raise engine_dead()

    def before_loading(self) -> None:
        """Raise Refusal for `oom`."""
        if self.oom:
            raise Refusal(
                "torch.OutOfMemoryError",
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "119.68 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this "
                "process has 118.41 GiB memory in use. Of the allocated memory 117.90 GiB is "
                "allocated by PyTorch, and 83.12 MiB is reserved by PyTorch but unallocated. "
                "If reserved but unallocated memory is large try setting "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
                engine=True,
            )


def engine_dead() -> ApiError:
    """Error of vLLM once its engine has died."""
    text = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    return ApiError(500, "InternalServerError", text)


def read_faults(text: str) -> Faults:
    """The faults named in a text, separated by commas; SystemExit for an unknown name."""
    numbers = {field.name for field in fields(Faults) if field.default is None}
    switches = {field.name for field in fields(Faults)} - numbers
    chosen: dict[str, bool | float] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = word.partition("=")
        key = name.replace("-", "_")
        try:
            if key in numbers:
                chosen[key] = float(value)
            elif key in switches and not value:
                chosen[key] = True
            else:
                raise ValueError(name)
        except ValueError:
            expected = ", ".join(field.name.replace("_", "-") for field in fields(Faults))
            raise SystemExit(f"fake vllm: unknown fault {word!r}; there are {expected}") from None
    return Faults(**chosen)  # type: ignore[arg-type]
