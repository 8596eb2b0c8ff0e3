"""The check of vision: the model describes a picture that was drawn a moment ago."""

from __future__ import annotations

import re

from sparkwright.host.smoke import picture
from sparkwright.host.smoke.client import Client, Fault, clip, only_marks

_QUESTION = (
    "Look at the picture. Which two shapes are in it, in which colours, and which word is "
    "written below them? Name shapes, colours and word in one sentence."
)


def image(client: Client) -> str:
    """Shapes, colours and the word are named; one of the five may be wrong."""
    drawn = picture.drawn()
    content = [
        {"type": "image_url", "image_url": {"url": drawn.data_url()}},
        {"type": "text", "text": _QUESTION},
    ]
    body = client.body([{"role": "user", "content": content}], 128)
    answer = client.chat(body)
    if answer.text and only_marks(answer.text):
        raise Fault("marks", f"the answer to a picture is nothing but '!': {clip(answer.text)}")
    if answer.only_reasoning:
        answer = client.ask(body["messages"], 128)
    words = re.findall(r"\w+", (answer.text or "").lower())
    seen = [fact for fact in drawn.facts if fact in words]
    if len(seen) < len(drawn.facts) - 1:
        raise Fault("unseen", f"drawn: {drawn}; answer: {clip(answer.text)!r}")
    return f"{len(seen)} of {len(drawn.facts)} facts: {drawn}{answer.note}"
