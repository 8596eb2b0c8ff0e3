"""A service that names a model, with everything that is known when it is derived."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast, get_args

from sparkwright.catalog import Catalog, Image
from sparkwright.catalog.models import Format
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.derive.gpu import Gpu
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.model_facts import ModelFacts

#: What serves a model that no recipe is for.
STOCK = "vllm-openai"
#: ``quant_method`` of config.json -> the catalog's name, where they differ.
_FORMATS = {"auto-round": "autoround", "modelopt_fp4": "modelopt"}


@dataclass(frozen=True)
class Subject:
    """A service whose model no recipe of the catalog is for.

    Attributes:
        where: file and key of the service, for messages.
    """

    host: str
    name: str
    service: ServiceSettings
    settings: HostSettings
    catalog: Catalog
    gpu: Gpu
    image: Image
    resolved: ResolvedModel
    where: str

    @property
    def repository(self) -> str:
        """The model's repository."""
        return self.resolved.repository

    @property
    def facts(self) -> ModelFacts:
        """What its files say."""
        return self.resolved.facts or ModelFacts()

    @property
    def said(self) -> str:
        """Who says what config.json says."""
        return self.from_file("config.json")

    def from_file(self, name: str) -> str:
        """Who says what a file of the repository says."""
        return f"{name} of {self.repository}@{self.resolved.commit[:7]}"

    @cached_property
    def tag(self) -> str:
        """The image's tag that the service runs."""
        given = self.service.image_tag
        own = self.settings.image_tag
        return given or (own if own in self.image.tags else None) or self.image.newest_tag

    @property
    def vllm(self) -> str | None:
        """The tag's vLLM, where the catalog says it."""
        tag = self.image.tags.get(self.tag)
        return tag.vllm if tag else None

    @cached_property
    def weights(self) -> int:
        """Bytes of the weights. Mistral's repositories have them twice, under two names."""
        files = [one for one in self.resolved.files if one.path.endswith(".safetensors")]
        once = [one for one in files if not one.path.startswith("consolidated")]
        return sum(one.size for one in once or files)

    @property
    def mistral(self) -> bool:
        """Whether it has Mistral's own tokenizer, which templates itself."""
        return any(one.path == "tekken.json" for one in self.resolved.files)

    @property
    def form(self) -> Format | None:
        """The weights' format in the catalog's words; None for one that it has no name for."""
        method = self.facts.quantization
        if method is None:
            return "bf16" if self.facts.dtype in (None, "bfloat16") else None
        name = _FORMATS.get(method, method)
        return cast("Format", name) if name in get_args(Format) else None
