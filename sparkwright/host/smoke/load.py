"""Checks of the engine under load: long prompts, prompts above the limit, drafts, cached prefixes,
and the planned number of requests at once."""

import random
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from sparkwright.host.lib import http, metrics
from sparkwright.host.lib.faults import Fault, clip, fail_if
from sparkwright.host.smoke import check
from sparkwright.host.smoke.client import DeepClient, Skip, error_of

_WORDS = ("lamp", "river", "stone", "copper", "garden", "winter", "pepper", "velvet", "anchor")
_PLACES = ("in the hall", "by the window", "under the bridge", "near the harbour", "on the table")
#: Blocks of the KV cache that a repeated prompt spans. Models with recurrent layers keep a state
#: per block of 528 to 2096 tokens, and MTP drafters lose the last matching block.
_BLOCKS = 3
#: Models with recurrent layers may cache a prefix only after its second use.
_REPEATS = 3
_HYBRID_BLOCK = 256
_COUNTED = " ".join(str(number) for number in range(1, 21))


def fits(context: int, tokens: int) -> bool:
    """Return whether a context has room for a filler of this size, which may get longer, and an
    answer.
    """
    return context >= tokens * 1.2 + 512


def needle(client: DeepClient, tokens: int) -> str:
    """Check that the model remembers a word from the start of a prompt of more than ``tokens``
    tokens.
    """
    if not fits(client.context(), tokens):
        raise Skip(f"a context of {client.context()} tokens is too short for the prompt")
    chance = random.SystemRandom()
    word = f"{chance.choice(_WORDS)}{chance.randrange(100, 1000)}"
    start = f"Remember this: the access word is {word}.\n\n"
    end = "\n\nWhat is the access word that you were told to remember? Answer with that word only."
    answer = client.ask(start + filler(client, tokens) + end, 32)
    asked = answer.prompt_tokens
    fail_if(asked <= tokens, "short", f"the probe has only {asked} tokens")
    lost = f"after {asked} tokens the model has forgotten {word}: {clip(answer.text)!r}"
    fail_if(word not in (answer.text or "").lower(), "forgot", lost)
    return f"the model remembered {word} across {asked} tokens{answer.note}"


def limit(client: DeepClient) -> str:
    """Check that a prompt longer than the context is refused at once, with a reason."""
    context = client.context()
    prompt = filler(client, int(context * 1.1) + 64)
    over = f"a prompt over the context of {context} tokens"
    try:
        answer = client.call("POST", "/v1/chat/completions", client.body(prompt, 16))
    except Fault as fault:
        within = f"within {client.seconds:.0f} s: the engine hangs"
        fail_if(fault.cause == "late", "hang", f"{over} gets no answer {within}")
        raise
    status, text = answer.status, error_of(answer)
    if status == 200:
        counted = answer.json()["usage"]["prompt_tokens"]
        raise Fault("longer", f"{counted} tokens are accepted, but the context is {context}")
    fail_if(status >= 500, "broken", f"{over} breaks the engine: HTTP {status}: {clip(text)}")
    named = status == 400 and any(part in text.lower() for part in client.request.context_errors)
    unclear = f"the refusal does not name the context: HTTP {status}: {clip(text)}"
    fail_if(not named, "unclear", unclear)
    return f"HTTP {status}: {clip(text)}"


def filler(client: DeepClient, tokens: int) -> str:
    """Return lines of more than ``tokens`` tokens, counted with the model's own tokenizer."""
    sample = 40
    each = client.count(lines(sample)) / sample
    # Add a twentieth: later numbers have more digits, which tokenizers count differently.
    return lines(int(1.05 * tokens / each) + 2)


def lines(count: int) -> str:
    """Return lines that differ from each other and have no content."""
    return "\n".join(
        f"Note {number}: the {_WORDS[number % len(_WORDS)]} stays {_PLACES[number % len(_PLACES)]}."
        for number in range(count)
    )


def speculation(client: DeepClient) -> str:
    """Check that tokens are drafted and some are accepted: otherwise the drafter only costs
    time.
    """
    return check.speculation(client, lambda _: client.ask(check.FORESEEABLE, 96))


def prefix_cache(client: DeepClient) -> str:
    """Check that a repeated prompt is not computed again."""
    first = client.metrics()
    if client.request.prefix_caching is None and first.texts.get(metrics.PREFIX_CACHING) != "True":
        raise Skip("the engine turns prefix caching off for this model by default")
    tokens = max(512, (_BLOCKS + 1) * first.block)
    context = client.context()
    if not fits(context, tokens):
        raise Skip(f"{tokens} tokens, {_BLOCKS} blocks and more, do not fit a context of {context}")
    # The prompt starts with a random number, so that no earlier request of a client counts.
    prompt = client.body(
        f"{random.SystemRandom().getrandbits(64):x}\n{filler(client, tokens)}\nSay yes.", 2
    )
    client.chat(prompt)
    before = client.metrics()
    for repeat in range(2, _REPEATS + 1):
        client.chat(prompt)
        hits = client.metrics().since(before, metrics.PREFIX_HITS)
        if hits >= first.block:
            return f"{hits:.0f} tokens came from the cache in request {repeat}"
    queries = client.metrics().since(before, metrics.PREFIX_QUERIES)
    looked_up = f"{queries:.0f} tokens were looked up, and the cache had none"
    text = f"the same prompt was sent {_REPEATS} times: {looked_up}"
    kept = first.block < _HYBRID_BLOCK
    fail_if(not kept, "unkept", f"{text} (blocks of {first.block} tokens)")
    raise Fault("missed", text)


def concurrency(client: DeepClient) -> str:
    """Send as many requests at once as the recipe allows; each request must get its own, complete
    answer.
    """
    count = client.request.max_num_seqs or 1
    peak = 0.0
    with ThreadPoolExecutor(max_workers=count) as pool:
        asked = [pool.submit(_echo, client, number) for number in range(count)]
        while wait(asked, timeout=0.1).not_done:
            with suppress(Fault):  # the answers show whether the server is busy or has ended
                peak = max(peak, client.metrics().values.get(metrics.RUNNING, 0.0))
    texts = [text for text in (request.result() for request in asked) if text]
    first = texts[0] if texts else "complete"
    health = _health(client)
    died = f"after {count} requests at once, /health: {health}; one answer: {first}"
    fail_if(health != "HTTP 200", "died", died)
    dropped = f"{len(texts)} of {count} answers are not complete; first fault: {first}"
    fail_if(texts, "dropped", dropped)
    return f"{count} answers at once, all complete; {peak:.0f} requests ran together"


def _health(client: DeepClient) -> str:
    """Return the status of /health, regardless of the check's deadline."""
    try:
        return f"HTTP {client.server.get('/health', timeout=10).status}"
    except http.NoAnswer as error:
        return f"no answer: {error}"


def _echo(client: DeepClient, number: int) -> str | None:
    """Return None if this request gets its complete answer; otherwise the fault."""
    code = f"sparrow-{number:03d}"
    try:
        answer = client.ask(f"Repeat exactly: {_COUNTED} {code}", 128)
    except Fault as fault:
        return str(fault)
    text = " ".join((answer.text or "").split())
    return None if f"{_COUNTED} {code}" in text else f"the answer to {code} is {clip(text)!r}"
