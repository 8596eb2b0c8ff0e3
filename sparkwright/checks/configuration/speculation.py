"""Speculative decoding: the settings that vLLM checks late, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.rule import Context, Match, Rule
from sparkwright.engines.vllm.speculation import reserves_for_every_sequence, scheduled_token_budget
from sparkwright.findings.finding import Severity

#: vLLM's own default of max_num_seqs and max_num_batched_tokens is not known: it depends on the
#: GPU, which is why the cards want both set.
_LIMITS = ("max_num_seqs", "max_num_batched_tokens")


def _limits(context: Context) -> Iterator[Match]:
    if context.speculative.get("method") != "dflash":
        return
    for name in _LIMITS:
        if context.number(name) is None:
            yield Match(
                f"arguments.{name}",
                f"{name} is not set under DFlash",
                f"{name}: {16 if name == 'max_num_seqs' else 32768}",
            )


def _budget(context: Context) -> Iterator[Match]:
    tokens = context.speculative.get("num_speculative_tokens")
    seqs, batched = (context.number(name) for name in _LIMITS)
    if context.speculative.get("method") != "dflash" or seqs is None or batched is None:
        return
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        return
    budget = scheduled_token_budget(int(batched), int(seqs), tokens, context.vllm)
    if budget < 1:
        every = reserves_for_every_sequence(context.vllm)
        fewer = f", or max_num_seqs below {int(batched) // tokens}" if every else ""
        yield Match(
            "arguments.max_num_batched_tokens",
            f"{tokens} draft tokens for {f'{seqs:g} sequences' if every else 'a sequence'} leave "
            f"{budget} of {batched:g} batched tokens",
            f"max_num_batched_tokens: 32768{fewer}",
        )


def _config(context: Context) -> Iterator[Match]:
    config = context.speculative
    if not config:
        return
    tokens = config.get("num_speculative_tokens")
    key = "arguments.speculative_config"
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        yield Match(
            f"{key}.num_speculative_tokens",
            f"num_speculative_tokens is {tokens!r}",
            "a whole number from 1 on; the cards take 10 to 15 with DFlash, 3 with MTP",
        )
    elif tokens > 15:
        yield Match(
            f"{key}.num_speculative_tokens",
            f"{tokens} draft tokens",
            "10 to 15",
            reason="the drafters are trained on blocks of 16, of which one is the target's token",
            source="card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, recipe notes",
            severity=Severity.WARNING,
        )
    method = config.get("method")
    if method == "dflash":
        mount = context.service.drafter.mount if context.service.drafter else None
        if mount is None:
            yield Match(f"{key}.method", "DFlash without a drafter", "a recipe that has a drafter")
        elif config.get("model") != mount:
            yield Match(
                f"{key}.model",
                f"the drafter is mounted at {mount}, not at {config.get('model')!r}",
                f"model: {mount}",
            )
    elif context.drafter is not None:
        yield Match(
            f"{key}.method",
            f"method {method!r} leaves the recipe's drafter {context.drafter.name} unused",
            "a recipe without a drafter, or method: dflash",
            severity=Severity.WARNING,
        )


def _no_speculation(context: Context) -> Iterator[Match]:
    if not context.speculative and context.drafter is not None:
        yield Match(
            "arguments.speculative_config",
            f"drafter {context.drafter.name} is fetched and mounted, and is not used for drafting",
            "the recipe's speculative_config, or a recipe without a drafter",
        )


def _family(context: Context) -> Iterator[Match]:
    if context.drafter is not None and context.drafter.family != context.body.family:
        yield Match(
            "recipe",
            f"drafter {context.drafter.name} is made for {context.drafter.family}, "
            f"and the body is {context.body.family}",
            f"one of: {', '.join(context.body.pairs_with) or 'no drafter is known'}",
        )


def _mtp(context: Context) -> Iterator[Match]:
    method = str(context.speculative.get("method", ""))
    if method.endswith("mtp") and "mtp" not in context.body.capabilities:
        yield Match(
            "arguments.speculative_config.method",
            f"{context.body.name} has no MTP heads",
            "a body with MTP in its name, or a drafter",
        )


RULES = (
    Rule(
        "speculation-limits", Severity.ERROR, "DFlash without its two limits",
        "the scheduler can compute a negative token budget, and the server does not start",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, quickstart ('Required with DFlash')", _limits,
    ),
    Rule(
        "speculation-budget", Severity.ERROR, "a token budget that speculation uses up",
        "vLLM refuses to start: max_num_scheduled_tokens is set to a negative number",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, quickstart; vLLM's own VllmConfig, by "
        "version", _budget,
    ),
    Rule(
        "speculation-config", Severity.ERROR, "speculative settings that vLLM refuses late",
        "vLLM reads them only after the weights are loaded",
        "vLLM's SpeculativeConfig; card of vllm-ultimate-dgx-spark, 'Drafter materialization "
        "note'", _config,
    ),
    Rule(
        "drafter-unused", Severity.WARNING, "a drafter that nothing uses",
        "it takes disk and time to fetch",
        "sparkwright", _no_speculation,
    ),
    Rule(
        "drafter-family", Severity.ERROR, "a drafter of another model",
        "a drafter reads the hidden states of the body that it was trained with",
        "card of vllm-dflash, 'How DFlash works'", _family,
    ),
    Rule(
        "mtp-heads", Severity.ERROR, "MTP without MTP heads",
        "the method drafts with layers that only the MTP bodies have",
        "card of vllm-ultimate-dgx-spark, recipe B", _mtp,
    ),
)  # fmt: skip
