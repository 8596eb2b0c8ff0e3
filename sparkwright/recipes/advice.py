"""vLLM's own recipe of a repository, which takes precedence over the repository's files.

The recipe gives the start options of the engine's authors: parsers, kernels, variables. The host
still decides the use of its resources, and the same parts are left out as in an import.
"""

import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sparkwright.catalog.gpus import card_of
from sparkwright.engines import engine, tables
from sparkwright.engines.derivation import Advice, DerivedFact, Subject
from sparkwright.recipes import carried_over, vllm_recipes, yaml_mapping
from sparkwright.recipes.recipe import CHANGED, Foreign, Options, Text, Unfit, texts_of_registry
from sparkwright.recipes.serve_arguments import fitting, read_arguments
from sparkwright.resolve.model_facts import ModelRecipe
from sparkwright.resolve.recipe_registry import Snapshot

#: Keys of a recipe that describe the start of the model. The recipe's guide and installation are
#: for readers.
_KEYS = (
    "meta", "model", "variants", "features", "opt_in_features", "strategy_overrides",
    "hardware_overrides", "omni",
)  # fmt: skip
_INSTALLATION = ("dependencies", "install", "docker_source")
#: Pattern of vLLM's own image with the tag of a version.
_STOCK = re.compile(r"vllm/vllm-openai:v?(\d+\.\d+\.\d+)(-[a-z0-9_.-]+)?")
#: Arguments that depend on the serving host's size.
_SIZES = ("gpu_memory_utilization", "max_model_len", "max_num_seqs", *engine("vllm").gpu_counts)


def look_up(repository: str, registries: Iterable[Snapshot]) -> ModelRecipe | None:
    """The first recipe of these registries that serves a repository.

    Raises:
        UserError: a registry can't be read.
    """
    for registry in registries:
        for text in texts_of_registry(registry, registry.naming(repository)):
            try:
                data = yaml_mapping.read_yaml(text.text)
                if vllm_recipes.is_one(data) and any(_variants(data, repository)):
                    return ModelRecipe(source=text.source, data=_kept(data))
            except Unfit:
                continue  # a guide of another model, or not a recipe
    return None


def advice(subject: Subject) -> Advice:
    """The advice of vLLM's recipe for a service; empty without a recipe, and for another engine."""
    recipe = subject.resolved.recipe
    if recipe is None or subject.image.engine != "vllm":
        return Advice()
    try:
        foreign = _foreign(subject, recipe)
        remarks, model, version = foreign.remarks, subject.repository, subject.version
        values = read_arguments(foreign.arguments, version, remarks).values
        arguments = carried_over.settled(foreign, values, model, version, _options(subject))
    except Unfit as refused:
        observed = f"not taken: {refused.observed} ({refused.reason})"
        return Advice(facts=(DerivedFact("vLLM's recipe", observed, recipe.source),))
    speculative = arguments.get("speculative_config")
    if isinstance(speculative, dict):
        drafter = speculative.pop("model", None)
        if drafter not in (None, model):
            remarks.note("second-model", "speculative_config", str(drafter))
            del arguments["speculative_config"]
    left_out = [
        DerivedFact("not taken", finding.observed, f"{recipe.source}: {finding.reason}")
        for finding in remarks.findings
        if finding.id != CHANGED or (finding.subject.key or "").rpartition(".")[2] not in _SIZES
    ]
    return Advice(
        recipe.source,
        {key: fitting(value) for key, value in arguments.items() if key not in _SIZES},
        carried_over.variables(foreign, version, _options(subject)),
        foreign.least_vllm,
        (DerivedFact("vLLM's recipe", foreign.title, recipe.source), *left_out),
    )


def _foreign(subject: Subject, recipe: ModelRecipe) -> Foreign:
    """The named variant of the repository.

    Raises:
        Unfit: the recipe is for another engine or another GPU.
    """
    name = next(_variants(recipe.data, subject.repository), None)
    if name is None:
        raise Unfit("variants", "no variant has these weights", "the lock differs")
    # Later code uses only the source of this text.
    text = Text(recipe.source, "", recipe.source, dt.date.min)
    options = replace(_options(subject), variants=(name,))
    (foreign,) = vllm_recipes.read(text, recipe.data, options)
    if isinstance(foreign, Unfit):
        raise foreign
    least = foreign.least_vllm
    if foreign.container is not None:
        stock = _STOCK.fullmatch(foreign.container)
        if stock is None:
            raise Unfit(
                "docker_image", foreign.container, "the recipe's arguments are for this image"
            )
        least = max(least or "0", stock[1], key=tables.release)
    # The repository's files determine its needs, not the size of a datacentre's GPU.
    return replace(foreign, least_vllm=least, gpus=1, vram_gib=None)


def _options(subject: Subject) -> Options:
    allowed = frozenset(subject.settings.allowed_in_recipes)
    return Options(gpu=subject.settings.gpu or card_of(subject.gpu.cap), allowed=allowed)


def _variants(data: dict[str, Any], repository: str) -> Iterator[str]:
    """Names of the variants with these weights, the usual variant first."""
    own = yaml_mapping.mapping(data, "model").get("model_id")
    variants = yaml_mapping.mapping(data, "variants")
    for name in sorted(variants, key=lambda name: name != "default"):
        if (yaml_mapping.mapping(variants, name).get("model_id") or own) == repository:
            yield name


def _kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe in the lock's form: plain data, with keys in order."""
    kept = {key: data[key] for key in _KEYS if data.get(key) is not None}
    model = kept["model"]
    kept["model"] = {key: model[key] for key in model if key not in _INSTALLATION}
    return dict(json.loads(json.dumps(kept, default=str)))
