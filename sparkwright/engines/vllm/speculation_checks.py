"""Checks of settings of speculative decoding that vLLM checks late or never."""

from collections.abc import Iterator, Mapping

from sparkwright.catalog.data import Scalar
from sparkwright.engines.engine import Configuration
from sparkwright.engines.tables import release
from sparkwright.findings.check import Symptom, check

#: vLLM's default of max_num_seqs and max_num_batched_tokens depends on the GPU and is not known, so
#: the cards require both arguments.
LIMITS = {"max_num_seqs": 16, "max_num_batched_tokens": 32768}
#: Methods that draft with a separate model, which must be mounted.
DRAFTERS = ("dflash", "draft_model", "dspark", "eagle", "eagle3", "medusa", "mlp_speculator")
#: The first version that takes drafts out of the budget step by step, as they are made.
ADAPTIVE_SINCE = (0, 28, 0)


def reserves_for_every_sequence(vllm: str | None) -> bool:
    """Return whether a version reserves draft slots for max_num_seqs; True if it is unknown."""
    return vllm is None or release(vllm) < ADAPTIVE_SINCE


def scheduled_token_budget(batched: int, seqs: int, tokens: int, vllm: str | None = None) -> int:
    """Return the tokens that a step may schedule under DFlash; vLLM refuses to start if the number
    is not positive.

    vLLM calls this number max_num_scheduled_tokens. Up to 0.27.0 vLLM reserves
    ``num_speculative_tokens - 1`` slots for every sequence that may run: with 11 tokens, 256
    sequences and 2048 batched tokens it computes -512. From 0.28.0 on vLLM reserves no slots, and
    only the ``num_speculative_tokens`` of one sequence must leave room for a token: the same
    settings start.

    Args:
        batched: max_num_batched_tokens; seqs: max_num_seqs; tokens: num_speculative_tokens.
        vllm: the version; None if no card gives it, and then the older, stricter rule applies.

    Source: VllmConfig._set_max_num_scheduled_tokens and
        SpeculativeConfig.max_num_new_slots_for_drafting in 0.23.0, 0.24.0, 0.26.0 to 0.30.0 and
        0.32.0.
    """
    if reserves_for_every_sequence(vllm):
        return batched - seqs * (tokens - 1)
    return batched if batched > tokens else batched - tokens


def _settings(context: Configuration) -> Mapping[str, Scalar | None]:
    return context.limits.speculative or {}


def _tokens(context: Configuration) -> int | None:
    """The draft tokens; None if the value is not a whole number."""
    tokens = _settings(context).get("num_speculative_tokens")
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None


@check("speculation-limits")
def _limits(context: Configuration) -> Iterator[Symptom]:
    if _settings(context).get("method") == "dflash":
        for name, usual in LIMITS.items():
            if context.number(name) is None:
                yield Symptom(name=name, usual=usual)


@check("speculation-budget")
def _budget(context: Configuration) -> Iterator[Symptom]:
    tokens = _tokens(context)
    seqs, batched = (context.number(name) for name in LIMITS)
    # DFlash and DSpark draft in parallel.
    parallel = _settings(context).get("method") in ("dflash", "dspark")
    if not parallel or tokens is None or seqs is None or batched is None:
        return
    budget = scheduled_token_budget(int(batched), int(seqs), tokens, context.version)
    if budget < 1:
        case = "every-sequence" if reserves_for_every_sequence(context.version) else ""
        yield Symptom(
            "speculation-budget", case, tokens=tokens, seqs=seqs, batched=batched,
            budget=budget, fewer=int(batched) // tokens,
        )  # fmt: skip


@check("speculation-config")
def _config(context: Configuration) -> Iterator[Symptom]:
    config, tokens = _settings(context), _tokens(context)
    if not config:
        return
    if tokens is None or tokens < 1:
        usual = 3 if str(config.get("method", "")).endswith("mtp") else 10
        yield Symptom(tokens=config.get("num_speculative_tokens"), usual=usual)
    elif tokens > 15:
        yield Symptom("speculation-config", "many", tokens=tokens)
    method, mount = config.get("method"), context.drafter_mount
    model = config.get("model")
    # A body that contains DSpark's draft module needs no other model.
    drafts = method in DRAFTERS and (method, mount, model) != ("dspark", None, None)
    if drafts and mount is None:
        yield Symptom("speculation-config", "no-drafter", method=method)
    elif drafts and model != mount:
        yield Symptom("speculation-config", "elsewhere", mount=mount, model=model)
    elif not drafts and context.drafter is not None:
        yield Symptom(
            "speculation-config", "unused", method=method, drafter=context.drafter, mount=mount
        )


@check("drafter-unused")
def _no_speculation(context: Configuration) -> Iterator[Symptom]:
    if not _settings(context) and context.drafter is not None:
        yield Symptom(drafter=context.drafter)


@check("drafter-family")
def _family(context: Configuration) -> Iterator[Symptom]:
    drafter, body = context.drafter, context.body
    if drafter is not None and drafter.family != body.family:
        others = ", ".join(body.pairs_with) or "no drafter is known"
        yield Symptom(drafter=drafter, body=body, others=others)


@check("mtp-heads")
def _mtp(context: Configuration) -> Iterator[Symptom]:
    method = str(_settings(context).get("method", ""))
    if method.endswith("mtp") and "mtp" not in context.body.capabilities:
        mount = context.drafter_mount
        yield Symptom("mtp-heads", "drafter" if mount else "", body=context.body, mount=mount)
