"""Recipes: image, models, arguments and environment that serve together."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from sparkwright.catalog.claims import Ran
from sparkwright.catalog.containers import Exceptions, refuse_privileged
from sparkwright.catalog.data import (
    OWN,
    ArgumentName,
    ArgumentValue,
    Data,
    Gib,
    Name,
    ServedName,
    Status,
    Straight,
    VariableName,
)


class Mounted(Data):
    """A model and the path at which the container sees it.

    Attributes:
        model: an entry of the catalog.
        mount: absolute path in the container, as the arguments name it.
    """

    model: Name
    mount: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]+$"), Straight]


class Needs(Data):
    """What a recipe needs of its host.

    Attributes:
        compute_caps: accepted compute capabilities.
        memory_gib: least MemTotal of the host, in GiB.
        vram_gib: least memory of a GPU with memory of its own, in GiB; None where it runs on
            unified memory alone.
    """

    compute_caps: tuple[str, ...]
    memory_gib: Gib
    vram_gib: Gib | None = None


class Ranks(Data):
    """Over how many GPUs of a cluster's hosts a model is spread; their product is the ranks.

    Attributes:
        tensor: parts of each layer (``--tensor-parallel-size``).
        pipeline: groups of layers (``--pipeline-parallel-size``).
    """

    tensor: int = Field(default=1, ge=1, le=64)
    pipeline: int = Field(default=1, ge=1, le=64)

    @property
    def world(self) -> int:
        """All of them."""
        return self.tensor * self.pipeline


class TagChange(Data):
    """What a recipe says differently on one tag; None takes an argument or variable away.

    Attributes:
        arguments, environment: over the recipe's own.
    """

    arguments: dict[ArgumentName, ArgumentValue | None] = Field(default_factory=dict)
    environment: dict[VariableName, str | None] = Field(default_factory=dict)
    why: str
    source: str = OWN


class Alias(Data):
    """What a served name is meant for. All names of a service are one model: clients make the
    difference by what they send.

    Attributes:
        title: the use in a word or two, shown beside the name.
        temperature, top_p, top_k, presence_penalty: what clients send; None leaves it out.
        thinking: whether the model thinks first; None leaves it to the client.
        source: who says so.
    """

    title: str
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    thinking: bool | None = None
    source: str = OWN


class Recipe(Data):
    """Image + body + drafter + vLLM arguments + environment + needs.

    Attributes:
        system: which of the cards' systems this is, for the table in the docs.
        status: what its card says of it as a whole.
        image: the image that serves: an entry of the catalog.
        body: the model that answers.
        drafter: the model that proposes tokens for it; None without speculative decoding, and
            where the body has heads of its own for that.
        served_names: names that clients ask for; the first is the main one.
        needs: GPU and memory that it needs.
        environment: variables of the container.
        tag: the tag that the card gives it on; None for the image's newest.
        tags: those it is known to run on; empty for every tag of the image.
        by_tag: what differs on one tag.
        ranks: how it is spread over the hosts of a cluster; None for one host.
        aliases: served name -> what it is meant for; names without advice are left out.
        arguments: ``vllm serve`` arguments, in order, with underscores; ``true`` is a bare flag.
        shm_gib: size of /dev/shm that the card asks for.
        memlock: whether the card lifts the limit of locked memory.
        exceptions: what its container gets over the default.
        boot_seconds: how long a first boot may take until ``/health`` answers.
        first_answer_seconds: how long the first generation may take after that.
        notes: what a reader should know, in words, each with its source.
        ran: runs on real hardware with this tool; empty where there was none.
    """

    kind: Literal["recipe"]
    name: Name
    title: str
    system: str = OWN
    status: Status = "works"
    source: str = OWN
    date: dt.date | None = None
    image: Name
    tag: str | None = None
    tags: tuple[str, ...] = ()
    by_tag: dict[str, TagChange] = Field(default_factory=dict)
    body: Mounted
    drafter: Mounted | None = None
    served_names: tuple[ServedName, ...] = Field(min_length=1)
    aliases: dict[str, Alias] = Field(default_factory=dict)
    needs: Needs
    ranks: Ranks | None = None
    environment: dict[VariableName, str] = Field(default_factory=dict)
    arguments: dict[ArgumentName, ArgumentValue]
    shm_gib: Gib | None = None
    memlock: bool = False
    exceptions: Exceptions | None = None
    boot_seconds: int = Field(default=900, gt=0)
    first_answer_seconds: int = Field(default=120, gt=0)
    notes: tuple[str, ...] = ()
    ran: tuple[Ran, ...] = ()

    _refuse_privileged = model_validator(mode="before")(refuse_privileged)
