"""Models: Hugging Face repositories at a revision."""

from __future__ import annotations

import datetime as dt
from typing import Literal

from pydantic import Field, model_validator

from sparkwright.catalog.claims import Duties, GpuClaim, License, Switch
from sparkwright.catalog.data import OWN, Data, Gib, Name, Repository, Revision, Status
from sparkwright.catalog.issues import Issue

#: How weights are quantized; ``bf16`` is not at all.
Format = Literal[
    "compressed-tensors", "modelopt", "fp8", "awq", "gptq", "autoround", "mxfp4", "bf16"
]

#: What a model can do beside text; ``thinking-only`` thinks first, whatever a request says.
Capability = Literal["image", "video", "tools", "thinking", "thinking-only", "mtp"]


class KvLayers(Data):
    """Layers of one kind that keep keys and values.

    Attributes:
        layers: how many there are.
        heads: heads of keys and values in each.
        head_dim: numbers in a head.
        window: tokens that sliding-window layers keep; None for full attention.
    """

    layers: int = Field(gt=0)
    heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    window: int | None = Field(default=None, gt=0)


class Sampling(Data):
    """Sampling that the model's authors advise for a mode and a use.

    Attributes:
        mode: whether the model thinks first.
        use: kind of work.
        temperature, top_p, top_k, presence_penalty: what clients send; None leaves it out.
    """

    mode: Literal["thinking", "instruct", "any"]
    use: Literal["general", "coding", "math", "fast-drafting", "any"]
    temperature: float
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None


class ContentCheck(Data):
    """What a model's files must show, judged from headers and small files before they are used.

    Attributes:
        id: its name in messages.
        why: what goes wrong where it does not hold.
        absent, present: prefix of tensors' names that no, or some, tensor has.
        file, key, contains: a list in a JSON file of the repository that holds these values.
    """

    id: Name
    why: str
    source: str = OWN
    absent: str | None = None
    present: str | None = None
    file: str | None = None
    key: str | None = None
    contains: tuple[int | str, ...] | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> ContentCheck:
        listed = (self.file, self.key, self.contains)
        ways = [self.absent, self.present, None if None in listed else listed]
        if sum(way is not None for way in ways) != 1 or (None in listed and any(listed)):
            raise ValueError("give either absent, or present, or file with key and contains")
        return self


class Model(Data):
    """A Hugging Face repository at a revision.

    Attributes:
        repository: its name on the hub, ``organisation/name``.
        family: what rules and drafters go by, e.g. ``qwen3.6-27b``.
        role: ``body`` computes the answer, ``drafter`` proposes tokens for it.
        revision: branch, tag or commit.
        not_before: commits older than this day are known to be bad.
        format: how it is quantized; None where no card says it.
        architecture: the class in its config.json, by which vLLM finds its implementation; None
            leaves that unchecked.
        size_gib: of all files together, from the card's GB; None where nobody gives it.
        loaded_gib: what the weights take once loaded, from the card's GB.
        context: tokens that the model was made for.
        capabilities: what it can do beside text.
        kv: layers that keep keys and values; empty where no card gives them.
        hybrid: whether its other layers keep a state instead (Gated DeltaNet, Mamba), by which
            vLLM's defaults differ.
        pairs_with: drafters made for this body.
        sampling: what its authors advise.
        status, reason: what the cards say of it, and why where it fails.
        known_bad: older revisions, in words, and what is wrong with them.
        code: Python files of the repository that ``trust_remote_code`` may run, once read.
        switches: what a request can set in the chat template.
        gpus: what its card says of GPUs.
        license: the terms that it is published under.
        duties: what its card asks of whoever runs it.
        checks: what the files must show, so that a bad revision is known by its content too.
        issues: known mistakes with this model.
    """

    kind: Literal["model"]
    name: Name
    repository: Repository
    family: Name
    revision: Revision = "main"
    not_before: dt.date | None = None
    role: Literal["body", "drafter"]
    format: Format | None
    architecture: str | None = None
    size_gib: Gib | None = None
    loaded_gib: Gib | None = None
    context: int | None = Field(default=None, gt=0)
    capabilities: tuple[Capability, ...] = ()
    kv: tuple[KvLayers, ...] = ()
    hybrid: bool = False
    pairs_with: tuple[Name, ...] = ()
    sampling: tuple[Sampling, ...] = ()
    status: Status = "works"
    reason: str | None = None
    known_bad: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    switches: tuple[Switch, ...] = ()
    gpus: tuple[GpuClaim, ...] = ()
    license: License | None = None
    duties: Duties | None = None
    checks: tuple[ContentCheck, ...] = ()
    issues: tuple[Issue, ...] = ()
    source: str = OWN
    date: dt.date | None = None
