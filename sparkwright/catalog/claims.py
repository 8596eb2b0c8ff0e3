"""What a card says around an image or a model: GPUs, licence, duties, switches of a request."""

from __future__ import annotations

import datetime as dt
from typing import Literal

from sparkwright.catalog.data import OWN, Data, Scalar


class GpuClaim(Data):
    """What a card says of a GPU; what runs there with this tool is in a recipe's ``needs``.

    Attributes:
        gpu: as the card names it.
        claim: ``validated`` was run by the card's author, ``listed`` is named as fitting,
            ``untested`` is expected to fit, ``rebuild`` needs an image of its own, ``no`` fails.
        note: what the card adds.
    """

    gpu: str
    claim: Literal["validated", "listed", "untested", "rebuild", "no"]
    note: str | None = None
    source: str = OWN


class License(Data):
    """Under which terms something is published.

    Attributes:
        name: an SPDX identifier where there is one; None where no source names a licence.
        note: parts with other terms, and sources that disagree.
    """

    name: str | None
    note: str | None = None
    source: str = OWN


class Duties(Data):
    """What a card asks of whoever runs an uncensored model, in this project's words.

    Attributes:
        duties: a line each.
    """

    duties: tuple[str, ...]
    source: str = OWN


class Switch(Data):
    """A key of a request's ``chat_template_kwargs``.

    Attributes:
        key: its name.
        value: what the card sends.
        meaning: what that does.
    """

    key: str
    value: Scalar
    meaning: str
    source: str = OWN


class ImageVariable(Data):
    """An environment variable that an image reads, as its card documents it.

    Attributes:
        name: of the variable.
        default: without it; None where the card gives none, or it is required.
        meaning: what it sets, and the values that the card names.
    """

    name: str
    default: str | None = None
    meaning: str
    source: str = OWN


class OtherImage(Data):
    """An image beside this one that a card names and gives no command for.

    Attributes:
        reference: with its tag.
        what: what the card says of it.
    """

    reference: str
    what: str
    source: str = OWN


class Ran(Data):
    """A run of a recipe on real hardware, deployed with this tool.

    Attributes:
        gpu: what it ran on.
        date: the day.
        what: what was tried, and what came of it.
        source: who ran it, and where that can be read.
    """

    gpu: str
    date: dt.date
    what: str
    source: str = OWN
