"""The service as a whole: its image, secrets, mounts, names."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sparkwright.catalog.gpu import family
from sparkwright.catalog.gpus import recipes_for
from sparkwright.checks.configuration.rule import Context, Match, Rule
from sparkwright.config.settings import is_loopback
from sparkwright.engines import engine
from sparkwright.engines.vllm.command import PARALLEL
from sparkwright.findings.finding import Severity

#: Variables that hold secrets, and where they belong.
_SECRETS = {
    "VLLM_API_KEY": "api_key_file, or SPARKWRIGHT_API_KEY in the environment of the controller",
    "HF_TOKEN": "hub_token_file, or HF_TOKEN in the environment of the controller",
    "HUGGING_FACE_HUB_TOKEN": "hub_token_file, or HF_TOKEN in the environment of the controller",
}


def _architecture(context: Context) -> Iterator[Match]:
    own, cap = context.hardware.architecture, context.hardware.compute_cap
    tag = context.service.image.tag
    published = context.image.tags[tag].architectures
    if own is None or own in published:
        return
    others = recipes_for(context.catalog, own, {cap}, context.service.needs.vram_gib)
    yield Match(
        "recipe",
        f"{context.image.name}:{tag} is for {' and '.join(published)} alone, and machines with "
        f"{family(cap)} are {own}",
        f"recipe: {' or '.join(others)}" if others else f"an image with linux/{own}",
    )


def _secrets(context: Context) -> Iterator[Match]:
    for name, place in _SECRETS.items():
        if name in context.environment:
            yield Match(f"environment.{name}", f"{name} in the compose file", place)


def _mounts(context: Context) -> Iterator[Match]:
    service = context.service
    mounts = [model.mount for model in service.models]
    if len(set(mounts)) < len(mounts):
        yield Match("recipe", f"body and drafter are both mounted at {mounts[0]}", "two paths")
    for key, value in service.arguments:
        if key in ("model", "tokenizer") and value not in mounts:
            yield Match(
                f"arguments.{key}",
                f"{value!r} is not a directory in the container",
                f"leave it out: {service.body.mount} is served",
            )


def _one_name(context: Context) -> Iterator[Match]:
    if context.image.variables is not None and len(context.service.served_names) > 1:
        yield Match(
            "served_names",
            f"{len(context.service.served_names)} names for an image that takes one",
            "one name; the others go past the image's own entry point, in EXTRA_ARGS",
        )


def _tag_of_recipe(context: Context) -> Iterator[Match]:
    tag = context.service.image.tag
    newest = context.image.newest_tag
    if context.recipe.tag or tag == newest or tag not in context.image.tags:
        return
    if context.image.tags[newest].rollback == tag:
        return  # the tag that the card names to go back to
    yield Match(
        "image_tag",
        f"tag {tag} is of {context.image.tags[tag].date or 'no known day'}; the newest is {newest}",
        f"image_tag: {newest}",
    )


def _open_routes(context: Context) -> Iterator[Match]:
    service = context.service
    if service.proxy is None and not is_loopback(service.bind):
        yield Match(
            "bind",
            f"{service.bind}:{service.port} without a proxy: whoever connects needs no key for "
            f"{', '.join(engine(service.engine).routes.open)}",
            'drop "proxy": False (HAProxy asks for the key on every route), or drop bind (only '
            "the host itself reaches the service then)",
        )


def _gpus(context: Context) -> Iterator[Match]:
    there = len(context.service.gpus) or context.hardware.gpus
    if there is not None and context.service.rank is not None:
        there *= len(context.service.rank.hosts)
    sizes = [int(context.number(name) or 1) for name in PARALLEL]
    wanted = math.prod(sizes)
    if there is not None and wanted > there:
        name = PARALLEL[sizes.index(max(sizes))]
        yield Match(
            f"arguments.{name}",
            f"{wanted} GPUs ({' x '.join(PARALLEL)}) where the service gets {there}",
            f"{name}: {there}" + ("" if context.hardware.unified else ", or more in gpus"),
        )


RULES = (
    Rule(
        "image-architecture", Severity.ERROR, "an image that has not the machine's architecture",
        "Docker pulls it, and nothing in it can be started",
        "the tags' architectures in the catalog; RTX 50 and aeon-vllm-ultimate: its author in "
        "AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored-DFlash#9 (2026-06-26)", _architecture,
    ),
    Rule(
        "secret-in-environment", Severity.ERROR, "a secret in the compose file",
        "the compose file and docker inspect show it", "sparkwright", _secrets,
    ),
    Rule(
        "open-routes", Severity.ERROR, "a service that answers others without the key",
        "vLLM's own key check covers /v1, /v2 and /inference; /invocations generates without it",
        "vLLM 0.24.0, asked route by route", _open_routes,
    ),
    Rule(
        "mounts", Severity.ERROR, "paths that the container does not have",
        "only body and drafter are mounted, read-only and without links out of them",
        "card of vllm-ultimate-dgx-spark, 'Drafter materialization note'", _mounts,
    ),
    Rule(
        "gpu-count", Severity.ERROR, "more GPUs than there are",
        "vLLM waits for workers on GPUs that do not exist, and ends; a DGX Spark has one GPU",
        "vLLM's ParallelConfig (world size); card of vllm-spark-omni-q36, 'Hard Requirements'",
        _gpus,
    ),
    Rule(
        "one-served-name", Severity.WARNING, "several names for an image that takes one",
        "its variable holds one name", "card of vllm-dflash, configuration table", _one_name,
    ),
    Rule(
        "old-tag", Severity.WARNING, "a tag older than the one to roll back to",
        "what the newer tags fixed is missing", "the images' tags in the catalog", _tag_of_recipe,
    ),
)  # fmt: skip
