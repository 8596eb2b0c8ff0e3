"""The check of sight: a picture that was made a moment ago is described."""

from __future__ import annotations

import re

from sparkwright.host.smoke import picture
from sparkwright.host.smoke.talk import Fault, Talk, clip, nothing_but_marks

_QUESTION = (
    "Look at the picture. Which two shapes are in it, in which colours, and which word is "
    "written below them? Name shapes, colours and word in one sentence."
)


def image(talk: Talk) -> str:
    """Shapes, colours and the word are named: one of the five may be mistaken."""
    drawn = picture.drawn()
    content = [
        {"type": "image_url", "image_url": {"url": drawn.data_url()}},
        {"type": "text", "text": _QUESTION},
    ]
    body = talk.body([{"role": "user", "content": content}], 128)
    answer = talk.chat(body)
    if answer.text and nothing_but_marks(answer.text):
        raise Fault("marks", f"a picture is answered with nothing but '!': {clip(answer.text)}")
    if answer.lost_in_thought:
        answer = talk.ask(body["messages"], 128)
    words = re.findall(r"\w+", (answer.text or "").lower())
    seen = [fact for fact in drawn.facts if fact in words]
    if len(seen) < len(drawn.facts) - 1:
        raise Fault("unseen", f"drawn: {drawn}; answered: {clip(answer.text)!r}")
    return f"{len(seen)} of {len(drawn.facts)} facts: {drawn}{answer.note}"
