"""A foreign recipe as entries of the catalog: recipe, models, and the image where it is new."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args

from sparkwright.catalog import Catalog, Model
from sparkwright.catalog.gpus import GPUS, VRAM, unified
from sparkwright.extras.imports.images import image_of
from sparkwright.extras.imports.names import distinct, family, repository, slug
from sparkwright.findings.finding import Finding
from sparkwright.recipes.carried_over import ranks, settled, variables
from sparkwright.recipes.recipe import Foreign, Options, Refused
from sparkwright.recipes.serve_arguments import Arguments, read_arguments
from sparkwright.recipes.yaml_mapping import line

#: Least MemTotal: of a Spark, as every recipe for one has it; of a box with a card of its own.
_SPARK_GIB, _BOX_GIB = 110.0, 32.0
_FORMATS = get_args(get_args(Model.model_fields["format"].annotation)[0])
#: Other names of formats.
_CALLED = {"auto-round": "autoround", "none": "bf16"}


@dataclass(frozen=True)
class Imported:
    """What becomes of one recipe.

    Attributes:
        name: of the new recipe.
        entries: (kind, name) -> the new entry, as YAML has it.
        original: the text that it was made from.
        whole: whether nothing was left out.
    """

    name: str
    source: str
    entries: dict[tuple[str, str], dict[str, Any]]
    original: str
    remarks: tuple[Finding, ...]
    whole: bool


def make(foreign: Foreign, catalog: Catalog, options: Options) -> Imported:
    """The entries of a recipe.

    Raises:
        Refused: for a recipe that can't be one of ours.
    """
    image = image_of(foreign, catalog, options)
    read = read_arguments(foreign.words, image.vllm, foreign.remarks)
    named = repository(read.model or foreign.model)
    if read.model and read.model != foreign.model:
        foreign.remarks.changed("model", f"{foreign.model}; the command serves {named}",
                                "what is started is what counts")  # fmt: skip
    arguments = settled(foreign, read.values, named, image.vllm, options)
    made: dict[tuple[str, str], dict[str, Any]] = {}
    if image.entry:
        made["image", image.name] = image.entry
    speculative = arguments.get("speculative_config")
    body = _model(foreign, named, foreign.revision, "body", _abilities(arguments), catalog, made)
    mounted = {"model": body, "mount": f"/models/{body}"}
    drafter = None
    if isinstance(speculative, dict) and isinstance(speculative.get("model"), str):
        drafter, speculative = _drafter(foreign, speculative, named, body, catalog, made)
        arguments["speculative_config"] = speculative
    name = _free(foreign, catalog, options)
    spread = ranks(arguments) if options.cluster else {}
    made["recipe", name] = {
        "kind": "recipe", "name": name, "title": foreign.title, "system": f"Imported: {named}",
        "status": "unproven", "source": foreign.text.source, "date": foreign.text.date,
        "image": image.name, "tag": image.tag, "body": mounted,
        **({"drafter": drafter} if drafter else {}),
        "served_names": _served_names(read, named),
        "needs": _needs(options),
        **({"ranks": spread} if spread else {}),
        "environment": variables(foreign, image.vllm), "arguments": arguments,
        **({"shm_gib": round(foreign.shm_gib, 3)} if foreign.shm_gib else {}),
        **({"memlock": True} if foreign.memlock else {}),
        "notes": [*foreign.notes, *_said(foreign)],
    }  # fmt: skip
    return Imported(
        name, foreign.remarks.source, made, foreign.text.text,
        tuple(foreign.remarks.findings), foreign.remarks.carried_whole,
    )  # fmt: skip


def _free(foreign: Foreign, catalog: Catalog, options: Options) -> str:
    """A name that no other recipe has: its own, else with that of its folder."""
    names = [options.name] if options.name else [foreign.name, foreign.longer_name]
    for name in map(slug, names):
        known = catalog.recipes.get(name)
        if known is None or _place(known.source) == _place(foreign.text.source):
            return name
    name = slug(names[0])
    raise Refused(
        "name", repr(name), f"the catalog has another recipe of that name: "
        f"{catalog.files.get(('recipe', name), 'of this import')}", "--name NAME",
    )  # fmt: skip


def _place(source: str | None) -> str:
    """A recipe's place, whatever its commit."""
    return re.sub(r"@[0-9a-f]{40}(?=:)", "", source or "")


def _served_names(read: Arguments, named: str) -> list[str]:
    return list(read.served_names) or [named]


def _needs(options: Options) -> dict[str, Any]:
    cap = GPUS[options.gpu]
    if unified(cap):
        return {"compute_caps": [cap], "memory_gib": _SPARK_GIB}
    return {
        "compute_caps": [cap],
        "memory_gib": _BOX_GIB,
        "vram_gib": float(int(VRAM[options.gpu])),
    }


def _abilities(arguments: dict[str, Any]) -> list[str]:
    """What the recipe starts the model for."""
    config = arguments.get("speculative_config")
    method = str(config.get("method", "")) if isinstance(config, dict) else ""
    abilities = {
        "tools": bool(arguments.get("tool_call_parser")),
        "thinking": bool(arguments.get("reasoning_parser")),
        "mtp": method.endswith("mtp"),
    }
    return [name for name, has in abilities.items() if has]


def _model(
    foreign: Foreign, named: str, revision: str | None, role: str, abilities: list[str],
    catalog: Catalog, made: dict[tuple[str, str], dict[str, Any]],
) -> str:  # fmt: skip
    """The name of the catalog's entry of a repository, or of a new one."""
    for known in catalog.models.values():
        same = known.repository.lower() == named.lower() and known.role == role
        if same and revision in (None, known.revision):
            _more(known, abilities, made)
            return known.name
    name = slug(f"{named}-{revision}" if revision else named)
    name = distinct(name, name in catalog.models, named, revision, role)
    weights = _CALLED.get(str(foreign.format), foreign.format)
    made["model", name] = {
        "kind": "model", "name": name, "repository": named,
        "family": family(named if role == "body" else foreign.model),
        **({"revision": revision} if revision else {}),
        "role": role, "status": "unproven",
        "format": weights if role == "body" and weights in _FORMATS else None,
        **({"context": foreign.context} if foreign.context and role == "body" else {}),
        **({"capabilities": abilities} if abilities else {}),
        "source": foreign.text.source, "date": foreign.text.date,
    }  # fmt: skip
    return name


def _more(known: Model, abilities: list[str], made: dict[tuple[str, str], dict[str, Any]]) -> None:
    """An entry that an import wrote gets what another recipe of the model starts it for."""
    more = [one for one in abilities if one not in known.capabilities]
    if more and known.status == "unproven":
        data = known.model_dump(mode="python", exclude_defaults=True)
        data["format"] = known.format
        made["model", known.name] = {**data, "capabilities": [*known.capabilities, *more]}


def _drafter(
    foreign: Foreign, config: dict[str, Any], named: str, body: str, catalog: Catalog,
    made: dict[tuple[str, str], dict[str, Any]],
) -> tuple[dict[str, str] | None, dict[str, Any]]:  # fmt: skip
    """The model that drafts, with its mount; none where the body drafts for itself."""
    own = repository(str(config["model"]))
    if own == named:
        return None, {**config, "model": f"/models/{body}"}
    name = _model(foreign, own, None, "drafter", [], catalog, made)
    if ("model", name) in made:
        known = catalog.models.get(body)
        made["model", name]["family"] = known.family if known else family(named)
    mount = f"/models/{name}"
    return {"model": name, "mount": mount}, {**config, "model": mount}


def _said(foreign: Foreign) -> list[str]:
    """What was left out or changed, for who reads the recipe a month later."""
    return [
        line(
            f"{one.id.removeprefix('import-').replace('-', ' ')}: {one.observed} ({one.reason})",
            300,
        )
        for one in foreign.remarks.findings
        if one.id in ("import-left-out", "import-changed")
    ]
