"""Entries of the catalog from a model's own files, as far as they are equal for every engine."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sparkwright.catalog import Alias, ArgumentValue, Model, Mounted, Needs, Recipe
from sparkwright.catalog.entries import Capability, License, Sampling, Task
from sparkwright.config.settings import THINKING_TOKENS, SmokeSettings
from sparkwright.engines.derivation import Derivation, Derived, DerivedFact, Subject
from sparkwright.text.sizes import GIB

#: Signs of a template with tools, with a switch for thinking, and with forced thinking.
_TOOLS, _SWITCH, _THINKS = "tools", "enable_thinking", "<think>"


def marks() -> tuple[str, ...]:
    """Texts to search for in a chat template."""
    return (_TOOLS, _SWITCH, _THINKS)


def capabilities_of(template: tuple[str, ...]) -> Iterator[Capability]:
    """Capabilities that a chat template claims, for an engine that parses by the template."""
    if _TOOLS in template:
        yield "tools"
    if _SWITCH in template or _THINKS in template:
        yield "thinking"
        if _SWITCH not in template:
            yield "thinking-only"


def recipe_of(
    subject: Subject,
    model: Model,
    arguments: Mapping[str, tuple[ArgumentValue, str]],
    needs: Needs,
    **more: Any,
) -> Recipe:
    """Recipe of a repository.

    Args:
        arguments: value and origin of each argument.
        more: further fields of the recipe.
    """
    fields: dict[str, Any] = {"status": "expected", "source": subject.config, **more}
    return Recipe(
        kind="recipe",
        name=f"{subject.name}.{model.name}",
        image=subject.image.name,
        body=Mounted(model=model.name, mount=f"/models/{subject.repository.rpartition('/')[2]}"),
        served_names=(subject.repository,),
        aliases=aliases_of(subject, model),
        needs=needs,
        arguments={key: value for key, (value, _) in arguments.items()},
        **fields,
    )


def model_of(subject: Subject, capabilities: tuple[Capability, ...]) -> Model:
    """Return the catalog's entry of the repository, or an entry derived from the repository's
    files.
    """
    revision, facts, header = subject.service.revision, subject.facts, subject.facts.gguf
    for model in subject.catalog.models.values():
        same = model.repository == subject.repository and revision in (None, model.revision)
        if same and model.file == (header and header.file):
            own = {"gguf": header, "projector": header.projector} if header else {}
            return model.model_copy(update=own)
    name = subject.repository.lower().replace("/", "--")
    if header:
        name += "." + re.sub(r"[^a-z0-9]+", "-", header.file.lower().removesuffix(".gguf"))
    if revision not in (None, "main"):
        name += "." + re.sub(r"[^a-z0-9]+", "-", str(revision).lower())
    sampling = facts.sampling
    return Model(
        kind="model",
        name=name,
        repository=subject.repository,
        revision=revision or "main",
        family=(facts.model_type or name).lower(),
        role="body",
        task=_task(subject),
        format=subject.form,
        file=header.file if header else None,
        projector=header.projector if header else None,
        gguf=header,
        architecture=facts.architecture,
        size_gib=round(subject.weights / GIB, 3) or 0.001,
        context=facts.context,
        capabilities=capabilities,
        kv=subject.resolved.kv,
        hybrid=facts.hybrid,
        sampling=(
            Sampling(
                mode="any", use="any", temperature=sampling["temperature"],
                top_p=sampling.get("top_p"),
                top_k=int(sampling["top_k"]) if "top_k" in sampling else None,
            ),
        ) if "temperature" in sampling else (),
        license=License(name=facts.license, source=f"card of {subject.repository} on the hub")
        if facts.license else None,
        source=subject.config,
    )  # fmt: skip


def _task(subject: Subject) -> Task:
    """Task of the model, from the hub or from a GGUF file's header; chat if no task is stated."""
    header = subject.facts.gguf
    if header and header.pooling:
        return "rerank" if header.pooling == "rank" else "embedding"
    return subject.facts.task or "chat"


def derived(
    subject: Subject,
    model: Model,
    recipe: Recipe,
    arguments: Mapping[str, tuple[ArgumentValue, str]],
    facts: Iterable[DerivedFact],
) -> Derived:
    """Return the service with its recipe; a model that always thinks gets more tokens in the smoke
    test.

    Args:
        arguments: value and origin of each argument.
    """
    changes: dict[str, object] = {"recipe": recipe.name}
    if "thinking-only" in model.capabilities and "smoke" not in subject.service.model_fields_set:
        changes["smoke"] = SmokeSettings(thinking=True, max_tokens=THINKING_TOKENS)
    origins = {key: origin for key, (_, origin) in arguments.items()}
    service = subject.service.model_copy(update=changes)
    return Derived(service, model, recipe, Derivation(origins, tuple(facts)))


def aliases_of(subject: Subject, model: Model) -> dict[str, Alias]:
    """The repository's name with its authors' recommended sampling."""
    for advised in model.sampling if "temperature" in subject.facts.sampling else ():
        if (advised.mode, advised.use) == ("any", "any"):
            figures = advised.model_dump(include={"temperature", "top_p", "top_k"})
            alias = Alias(title="the authors' sampling", source=subject.advised, **figures)
            return {subject.repository: alias}
    return {}


def facts_of_host(subject: Subject) -> Iterator[DerivedFact]:
    """Facts about GPU and image."""
    title = "the service's image" if subject.service.image else "the engine's stock image"
    yield DerivedFact("gpu", subject.gpu.cap, subject.gpu.origin)
    yield DerivedFact("image", f"{subject.image.name}:{subject.tag}", f"{title}, in the catalog")


def facts_of_sampling(subject: Subject) -> Iterator[DerivedFact]:
    """The sampling that the model's authors advise."""
    if subject.facts.sampling:
        rows = sorted(subject.facts.sampling.items())
        advised = ", ".join(f"{key} {value:g}" for key, value in rows)
        yield DerivedFact("sampling", advised, subject.advised)
