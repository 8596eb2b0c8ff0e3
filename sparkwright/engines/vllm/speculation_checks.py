"""Speculative decoding: the settings that vLLM checks late, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.engines.engine import Configuration
from sparkwright.engines.vllm.speculation import reserves_for_every_sequence, scheduled_token_budget
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

#: vLLM's own default of max_num_seqs and max_num_batched_tokens is not known: it depends on the
#: GPU, which is why the cards want both set.
_LIMITS = ("max_num_seqs", "max_num_batched_tokens")


@check("speculation-limits")
def _limits(context: Configuration) -> Iterator[Symptom]:
    if context.speculative.get("method") != "dflash":
        return
    for name in _LIMITS:
        if context.number(name) is None:
            yield Symptom(
                f"{name} is not set under DFlash",
                key=f"arguments.{name}",
                remedy=f"{name}: {16 if name == 'max_num_seqs' else 32768}",
            )


@check("speculation-budget")
def _budget(context: Configuration) -> Iterator[Symptom]:
    tokens = context.speculative.get("num_speculative_tokens")
    seqs, batched = (context.number(name) for name in _LIMITS)
    if context.speculative.get("method") != "dflash" or seqs is None or batched is None:
        return
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        return
    budget = scheduled_token_budget(int(batched), int(seqs), tokens, context.version)
    if budget < 1:
        every = reserves_for_every_sequence(context.version)
        fewer = f", or max_num_seqs below {int(batched) // tokens}" if every else ""
        yield Symptom(
            f"{tokens} draft tokens for {f'{seqs:g} sequences' if every else 'a sequence'} leave "
            f"{budget} of {batched:g} batched tokens",
            key="arguments.max_num_batched_tokens",
            remedy=f"max_num_batched_tokens: 32768{fewer}",
        )


@check("speculation-config")
def _config(context: Configuration) -> Iterator[Symptom]:
    config = context.speculative
    if not config:
        return
    tokens = config.get("num_speculative_tokens")
    key = "arguments.speculative_config"
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        yield Symptom(
            f"num_speculative_tokens is {tokens!r}",
            key=f"{key}.num_speculative_tokens",
            remedy="a whole number from 1 on; the cards take 10 to 15 with DFlash, 3 with MTP",
        )
    elif tokens > 15:
        yield Symptom(
            f"{tokens} draft tokens",
            key=f"{key}.num_speculative_tokens",
            remedy="10 to 15",
            reason="the drafters are trained on blocks of 16, of which one is the target's token",
            source="card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, recipe notes",
            severity=Severity.WARNING,
        )
    method = config.get("method")
    if method == "dflash":
        mount = context.drafter_mount
        if mount is None:
            yield Symptom(
                "DFlash without a drafter",
                key=f"{key}.method",
                remedy="a recipe that has a drafter",
            )
        elif config.get("model") != mount:
            yield Symptom(
                f"the drafter is mounted at {mount}, not at {config.get('model')!r}",
                key=f"{key}.model",
                remedy=f"model: {mount}",
            )
    elif context.drafter is not None:
        yield Symptom(
            f"method {method!r} leaves the recipe's drafter {context.drafter.name} unused",
            key=f"{key}.method",
            remedy="a recipe without a drafter, or method: dflash",
            severity=Severity.WARNING,
        )


@check("drafter-unused")
def _no_speculation(context: Configuration) -> Iterator[Symptom]:
    if not context.speculative and context.drafter is not None:
        yield Symptom(
            f"drafter {context.drafter.name} is fetched and mounted, and is not used for drafting",
            key="arguments.speculative_config",
        )


@check("drafter-family")
def _family(context: Configuration) -> Iterator[Symptom]:
    if context.drafter is not None and context.drafter.family != context.body.family:
        yield Symptom(
            f"drafter {context.drafter.name} is made for {context.drafter.family}, "
            f"and the body is {context.body.family}",
            key="recipe",
            remedy=f"one of: {', '.join(context.body.pairs_with) or 'no drafter is known'}",
        )


@check("mtp-heads")
def _mtp(context: Configuration) -> Iterator[Symptom]:
    method = str(context.speculative.get("method", ""))
    if method.endswith("mtp") and "mtp" not in context.body.capabilities:
        yield Symptom(
            f"{context.body.name} has no MTP heads",
            key="arguments.speculative_config.method",
        )
