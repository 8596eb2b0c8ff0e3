"""Checks of the engine under load: drafts, cached prefixes, and as many requests as planned."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from sparkwright.host.lib import metrics
from sparkwright.host.lib.http import NoAnswer
from sparkwright.host.smoke import check
from sparkwright.host.smoke.client import Client, DeepClient, Fault, Skip, clip, fail_if
from sparkwright.host.smoke.lengths import filler, fits

#: Blocks of the KV cache that a repeated prompt spans. Models with recurrent layers keep a state
#: per block of 528 to 2096 tokens, and drafters by MTP lose the last one that matches.
_BLOCKS = 3
#: Such models may keep a prefix only once it has come twice.
_REPEATS = 3
_HYBRID_BLOCK = 256
_COUNTED = " ".join(str(number) for number in range(1, 21))


def speculation(client: DeepClient) -> str:
    """Tokens are drafted, and some are accepted: else the drafter only costs time."""

    def ask(_: Client) -> None:
        client.ask(check.FORESEEABLE, 96)

    return check.speculation(client, ask)


def prefix_cache(client: DeepClient) -> str:
    """A repeated prompt is not computed again."""
    first = client.metrics()
    if client.request.prefix_caching is None and first.texts.get(metrics.PREFIX_CACHING) != "True":
        raise Skip("the engine's default for this model has prefix caching off")
    tokens = max(512, (_BLOCKS + 1) * first.block)
    context = client.context()
    if not fits(context, tokens):
        raise Skip(f"{tokens} tokens, {_BLOCKS} blocks and more, do not fit a context of {context}")
    # Random at its start: earlier requests of others must not count.
    prompt = client.body(
        f"{random.SystemRandom().getrandbits(64):x}\n{filler(client, tokens)}\nSay yes.", 2
    )
    client.chat(prompt)
    before = client.metrics()
    for repeat in range(2, _REPEATS + 1):
        client.chat(prompt)
        hits = client.metrics().since(before, metrics.PREFIX_HITS)
        if hits >= first.block:
            return f"{hits:.0f} tokens from the cache in request {repeat}"
    queries = client.metrics().since(before, metrics.PREFIX_QUERIES)
    looked_up = f"{queries:.0f} tokens looked up, none found in the cache"
    text = f"the same prompt {_REPEATS} times, {looked_up}"
    kept = first.block < _HYBRID_BLOCK
    fail_if(not kept, "unkept", f"{text} (blocks of {first.block} tokens)")
    raise Fault("missed", text)


def concurrency(client: DeepClient) -> str:
    """As many requests at once as the recipe allows; each gets its own, complete answer."""
    count = client.request.max_num_seqs or 1
    peak = 0.0
    with ThreadPoolExecutor(max_workers=count) as pool:
        asked = [pool.submit(_echo, client, number) for number in range(count)]
        while wait(asked, timeout=0.1).not_done:
            with suppress(Fault):  # if the server is busy, or ended, the answers show it
                peak = max(peak, client.metrics().values.get(metrics.RUNNING, 0.0))
    texts = [text for text in (request.result() for request in asked) if text]
    first = texts[0] if texts else "complete"
    health = _health(client)
    died = f"after {count} requests at once, /health answers {health}; one answer: {first}"
    fail_if(health != "HTTP 200", "died", died)
    dropped = f"{len(texts)} of {count} answers are not complete; one: {first}"
    fail_if(texts, "dropped", dropped)
    return f"{count} at once, all complete; {peak:.0f} of them observed running together"


def _health(client: DeepClient) -> str:
    """Status of /health, however long the check took."""
    try:
        return f"HTTP {client.server.get('/health', timeout=10).status}"
    except NoAnswer as error:
        return f"not: {error}"


def _echo(client: DeepClient, number: int) -> str | None:
    """None for the complete answer that this request must get; else what is wrong."""
    code = f"sparrow-{number:03d}"
    try:
        answer = client.ask(f"Repeat exactly: {_COUNTED} {code}", 128)
    except Fault as fault:
        return str(fault)
    text = " ".join((answer.text or "").split())
    return None if f"{_COUNTED} {code}" in text else f"the answer to {code} is {clip(text)!r}"
