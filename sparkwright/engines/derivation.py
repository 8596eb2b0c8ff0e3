"""A service that names only a model's repository: the facts from which an engine derives its
recipe.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import cast, get_args

from sparkwright.catalog import ArgumentValue, Catalog, Image, Model, Recipe, gpus
from sparkwright.catalog.entries import Format
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.host.lib.records import dataclass, field
from sparkwright.resolve import hub, model_facts

#: ``quant_method`` of config.json -> the catalog's name, where they differ.
_FORMATS = {"auto-round": "autoround", "modelopt_fp4": "modelopt"}


@dataclass(frozen=True)
class Gpu:
    """A host's GPU, as far as the host's settings describe the GPU before the host is queried.

    Attributes:
        cap: compute capability.
        vram_gib: dedicated memory; None on unified memory, and if no card is named.
        origin: the setting or the group with the GPU.
    """

    cap: str
    vram_gib: float | None
    origin: str

    @property
    def unified(self) -> bool:
        """Return whether CPU and GPU share one pool."""
        return gpus.unified(self.cap)


@dataclass(frozen=True)
class DerivedFact:
    """A fact from a model's own files, or a decision based on these files."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class Derivation:
    """Origins of a derived service's values.

    Attributes:
        arguments: argument -> the file or the recipe that gives its value.
        facts: all other facts, for the user.
        choice: choice of GGUF files, as in ``ModelReference``.
    """

    arguments: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[DerivedFact, ...] = ()
    choice: str = ""


@dataclass(frozen=True)
class Advice:
    """A recipe that the engine's authors publish for a model, as far as the recipe fits this host.

    Attributes:
        source: the recipe's address; empty if there is no recipe.
        least_version: least required version of the engine.
        facts: used and unused parts, with the reason.
    """

    source: str = ""
    arguments: Mapping[str, ArgumentValue] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    least_version: str | None = None
    facts: tuple[DerivedFact, ...] = ()


@dataclass(frozen=True)
class Subject:
    """A service of a model without a recipe in the catalog.

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
    resolved: hub.ResolvedModel
    where: str

    @property
    def repository(self) -> str:
        """The model's repository."""
        return self.resolved.repository

    @property
    def facts(self) -> model_facts.ModelFacts:
        """Facts from the model's files."""
        return self.resolved.facts or model_facts.ModelFacts()

    @property
    def config(self) -> str:
        """Name of the model's configuration file in messages."""
        header = self.facts.gguf
        return self.from_file(header.file if header else "config.json")

    @property
    def advised(self) -> str:
        """Name in messages of the file with the sampling that the model's authors advise."""
        return self.config if self.facts.gguf else self.from_file("generation_config.json")

    def from_file(self, name: str) -> str:
        """Name of a file of the repository in messages."""
        return f"{name} of {self.repository}@{self.resolved.commit[:7]}"

    @cached_property
    def tag(self) -> str:
        """Tag of the service's image."""
        own = self.settings.image_tag
        inherited = own if own in self.image.tags else None
        return self.service.image_tag or inherited or self.image.newest_tag

    @property
    def version(self) -> str | None:
        """The engine's version in the tag, if the catalog has it."""
        tag = self.image.tags.get(self.tag)
        return tag.version if tag else None

    @cached_property
    def weights(self) -> int:
        """Bytes of the weights.

        Mistral's repositories have their weights twice, under two names.
        """
        files = self.resolved.files
        if self.facts.gguf:
            return self.facts.gguf.tensor_bytes + self.facts.gguf.projector_bytes
        weights = [path for path in files if path.endswith(".safetensors")]
        once = [path for path in weights if not path.startswith("consolidated")]
        return sum(files[path].size for path in once or weights)

    @property
    def form(self) -> Format | None:
        """The catalog's name of the weights' format; None for an unknown format."""
        return form_of(self.facts)


def form_of(facts: model_facts.ModelFacts | None) -> Format | None:
    """The catalog's name of the format of a model's weights; None for an unknown format."""
    if facts is None or facts.gguf:
        return "gguf" if facts else None
    if (method := facts.quantization) is None:
        return "bf16" if facts.dtype in (None, "bfloat16") else None
    name = _FORMATS.get(method, method)
    return cast("Format", name) if name in get_args(Format) else None


def questions(
    texts: Path, subject: Subject, advice: Advice, symptoms: Iterable[Symptom]
) -> Iterator[Finding]:
    """Questions to the user, with the texts of a YAML file."""
    checks = load(texts)
    for symptom in symptoms:
        symptom.values.update(subject=subject, facts=subject.facts, advice=advice)
        result = checks[symptom.check].finding(symptom)
        where = f"{subject.where}.{result.subject.key}"
        yield mistake(where, result.observed, result.remedy, subject.host, reason=result.reason)


@dataclass(frozen=True)
class Derived:
    """A planned service.

    Attributes:
        service: the service's settings, with the recipe's name.
        derivation: origins of the service's values.
        questions: open questions to the user; with questions, the other fields do not count.
    """

    service: ServiceSettings
    model: Model | None = None
    recipe: Recipe | None = None
    derivation: Derivation = field(default_factory=Derivation)
    questions: tuple[Finding, ...] = ()
