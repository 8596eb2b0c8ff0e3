"""The service as a whole: its image, secrets, mounts, names."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sparkwright.catalog.gpus import family, recipes_for
from sparkwright.checks.configuration.facts import Context
from sparkwright.config.settings import is_loopback
from sparkwright.engines import engine
from sparkwright.engines.vllm.command import PARALLEL
from sparkwright.findings.check import Symptom, check

#: Variables that hold secrets, and where they belong.
_SECRETS = {
    "VLLM_API_KEY": "api_key_file, or SPARKWRIGHT_API_KEY in the environment of the controller",
    "HF_TOKEN": "hub_token_file, or HF_TOKEN in the environment of the controller",
    "HUGGING_FACE_HUB_TOKEN": "hub_token_file, or HF_TOKEN in the environment of the controller",
}


@check("image-architecture")
def _architecture(context: Context) -> Iterator[Symptom]:
    own, cap = context.hardware.architecture, context.hardware.compute_cap
    tag = context.service.image.tag
    published = context.image.tags[tag].architectures
    if own is None or own in published:
        return
    others = recipes_for(context.catalog, own, {cap}, context.service.needs.vram_gib)
    yield Symptom(
        f"{context.image.name}:{tag} is for {' and '.join(published)} alone, and machines with "
        f"{family(cap)} are {own}",
        key="recipe",
        remedy=f"recipe: {' or '.join(others)}" if others else f"an image with linux/{own}",
    )


@check("secret-in-environment")
def _secrets(context: Context) -> Iterator[Symptom]:
    for name, place in _SECRETS.items():
        if name in context.environment:
            yield Symptom(f"{name} in the compose file", key=f"environment.{name}", remedy=place)


@check("mounts")
def _mounts(context: Context) -> Iterator[Symptom]:
    service = context.service
    mounts = [model.mount for model in service.models]
    if len(set(mounts)) < len(mounts):
        yield Symptom(
            f"body and drafter are both mounted at {mounts[0]}", key="recipe", remedy="two paths"
        )
    for key, value in service.arguments:
        if key in ("model", "tokenizer") and value not in mounts:
            yield Symptom(
                f"{value!r} is not a directory in the container",
                key=f"arguments.{key}",
                remedy=f"leave it out: {service.body.mount} is served",
            )


@check("one-served-name")
def _one_name(context: Context) -> Iterator[Symptom]:
    if context.image.variables is not None and len(context.service.served_names) > 1:
        yield Symptom(
            f"{len(context.service.served_names)} names for an image that takes one",
            key="served_names",
        )


@check("old-tag")
def _tag_of_recipe(context: Context) -> Iterator[Symptom]:
    tag = context.service.image.tag
    newest = context.image.newest_tag
    if context.recipe.tag or tag == newest or tag not in context.image.tags:
        return
    if context.image.tags[newest].rollback == tag:
        return  # the tag that the card names to go back to
    yield Symptom(
        f"tag {tag} is of {context.image.tags[tag].date or 'no known day'}; the newest is {newest}",
        key="image_tag",
        remedy=f"image_tag: {newest}",
    )


@check("open-routes")
def _open_routes(context: Context) -> Iterator[Symptom]:
    service = context.service
    if service.proxy is None and not is_loopback(service.bind):
        yield Symptom(
            f"{service.bind}:{service.port} without a proxy: whoever connects needs no key for "
            f"{', '.join(engine(service.engine).routes.open)}",
            key="bind",
        )


@check("gpu-count")
def _gpus(context: Context) -> Iterator[Symptom]:
    there = len(context.service.gpus) or context.hardware.gpus
    if there is not None and context.service.rank is not None:
        there *= len(context.service.rank.hosts)
    sizes = [int(context.number(name) or 1) for name in PARALLEL]
    wanted = math.prod(sizes)
    if there is not None and wanted > there:
        name = PARALLEL[sizes.index(max(sizes))]
        yield Symptom(
            f"{wanted} GPUs ({' x '.join(PARALLEL)}) where the service gets {there}",
            key=f"arguments.{name}",
            remedy=f"{name}: {there}" + ("" if context.hardware.unified else ", or more in gpus"),
        )
