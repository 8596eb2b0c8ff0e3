"""The checks of the engine under load: drafts, cached prefixes, and as many requests as planned."""

from __future__ import annotations

import http.client
import random
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from sparkwright.host.smoke import check, counters
from sparkwright.host.smoke.lengths import filler, fits
from sparkwright.host.smoke.talk import Fault, Said, Skip, Talk, clip

#: Blocks of the KV cache that a repeated prompt spans. Models with recurrent layers keep a state
#: per block of 528 to 2096 tokens, and drafters by MTP lose the last one that matches.
_BLOCKS = 3
#: Such models may keep a prefix only once it has come twice.
_REPEATS = 3
_HYBRID_BLOCK = 256
_COUNTED = " ".join(str(number) for number in range(1, 21))


def speculation(talk: Talk) -> str:
    """Tokens are drafted, and some of them are right: else the drafter only costs."""
    before = talk.counters()
    talk.ask(check.FORESEEABLE, 96)
    after = talk.counters()
    drafts, drafted, accepted = (
        after.since(before, name) for name in (counters.DRAFTS, counters.DRAFTED, counters.ACCEPTED)
    )
    if not drafts or not drafted:
        raise Fault("undrafted", "no token was drafted: the drafter is not used")
    if not accepted:
        raise Fault(
            "unaccepted",
            f"none of {drafted:.0f} drafted tokens was accepted in {drafts:.0f} drafts",
        )
    return (
        f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted ({accepted / drafted:.0%}), "
        f"{1 + accepted / drafts:.1f} tokens a step"
    )


def prefix_cache(talk: Talk) -> str:
    """A prompt that comes again is not computed again."""
    first = talk.counters()
    if (
        talk.request["prefix_caching"] is None
        and first.cache.get("enable_prefix_caching") != "True"
    ):
        raise Skip("vLLM's default for this model has prefix caching off")
    tokens = max(512, (_BLOCKS + 1) * first.block)
    if not fits(talk.context(), tokens):
        raise Skip(
            f"{tokens} tokens, {_BLOCKS} blocks and more, do not fit a context of {talk.context()}"
        )
    # Something new at its very start: what others asked before must not count.
    prompt = talk.body(
        f"{random.SystemRandom().getrandbits(64):x}\n{filler(talk, tokens)}\nSay yes.", 2
    )
    talk.chat(prompt)
    before = talk.counters()
    for repeat in range(2, _REPEATS + 1):
        talk.chat(prompt)
        hits = talk.counters().since(before, counters.PREFIX_HITS)
        if hits >= first.block:
            return f"{hits:.0f} tokens taken from the cache at the {repeat}. time"
    asked = talk.counters().since(before, counters.PREFIX_QUERIES)
    seen = (
        f"the same prompt {_REPEATS} times, {asked:.0f} tokens looked up, none found in the cache"
    )
    if first.block >= _HYBRID_BLOCK:
        raise Fault("unkept", f"{seen} (blocks of {first.block} tokens)")
    raise Fault("missed", seen)


def concurrency(talk: Talk) -> str:
    """As many requests at once as the recipe lets in, each with an answer of its own, all whole."""
    count = int(talk.request["max_num_seqs"])
    peak = 0.0
    with ThreadPoolExecutor(max_workers=count) as pool:
        asked = [pool.submit(_echo, talk, number) for number in range(count)]
        while wait(asked, timeout=0.1).not_done:
            with suppress(Fault):  # a server that is busy, or gone, is told by the answers
                peak = max(peak, talk.counters().values.get(counters.RUNNING, 0.0))
    wrong = [text for text in (one.result() for one in asked) if text]
    if said := _ill(talk):
        more = f"; one answer: {wrong[0]}" if wrong else ""
        raise Fault("died", f"after {count} requests at once, /health says {said}{more}")
    if wrong:
        raise Fault(
            "dropped", f"{len(wrong)} of {count} answers at once are not whole; one: {wrong[0]}"
        )
    return f"{count} at once, all whole; {peak:.0f} of them seen running together"


def _ill(talk: Talk) -> str | None:
    """What /health says when it is not well, whatever time the answers took."""
    try:
        status, _ = talk.service.call("GET", "/health", timeout=10)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    return None if status == 200 else f"HTTP {status}"


def _echo(talk: Talk, number: int) -> str | None:
    """None for the whole answer that this number's request must have; else what is wrong."""
    code = f"sparrow-{number:03d}"
    try:
        answer: Said = talk.ask(f"Repeat exactly: {_COUNTED} {code}", 128)
    except Fault as fault:
        return str(fault)
    text = " ".join((answer.text or "").split())
    return None if f"{_COUNTED} {code}" in text else f"{code} is answered with {clip(text)!r}"
