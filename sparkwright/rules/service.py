"""The service as a whole: secrets, mounts, names."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.findings.finding import Severity
from sparkwright.rules.rule import Hit, Rule, Subject

#: Variables that hold secrets, and where they belong.
_SECRETS = {
    "VLLM_API_KEY": "api_key_file, or SPARKWRIGHT_API_KEY in the environment of the controller",
    "HF_TOKEN": "hub_token_file, or HF_TOKEN in the environment of the controller",
    "HUGGING_FACE_HUB_TOKEN": "hub_token_file, or HF_TOKEN in the environment of the controller",
}


def _secrets(subject: Subject) -> Iterator[Hit]:
    for name, place in _SECRETS.items():
        if name in subject.environment:
            yield Hit(f"environment.{name}", f"{name} in the compose file", place)


def _mounts(subject: Subject) -> Iterator[Hit]:
    service = subject.service
    mounts = [model.mount for model in service.models]
    if len(set(mounts)) < len(mounts):
        yield Hit("recipe", f"body and drafter are both mounted at {mounts[0]}", "two paths")
    for key, value in service.arguments:
        if key in ("model", "tokenizer") and value not in mounts:
            yield Hit(
                f"arguments.{key}",
                f"{value!r} is no directory that the container has",
                f"leave it out: {service.body.mount} is served",
            )


def _one_name(subject: Subject) -> Iterator[Hit]:
    if subject.image.variables is not None and len(subject.service.served_names) > 1:
        yield Hit(
            "served_names",
            f"{len(subject.service.served_names)} names for an image that takes one",
            "one name; the others go to EXTRA_ARGS, which this image passes on unchecked",
        )


def _tag_of_recipe(subject: Subject) -> Iterator[Hit]:
    tag = subject.service.image.tag
    newest = subject.image.newest_tag
    if subject.recipe.tag or tag == newest or tag not in subject.image.tags:
        return
    if subject.image.tags[newest].rollback == tag:
        return  # the tag that the card names to go back to
    yield Hit(
        "image_tag",
        f"tag {tag} is of {subject.image.tags[tag].date}; the newest is {newest}",
        f"image_tag: {newest}",
    )


RULES = (
    Rule(
        "secret-in-environment", Severity.ERROR, "a secret in the compose file",
        "the compose file and docker inspect show it", "this project", _secrets,
    ),
    Rule(
        "mounts", Severity.ERROR, "paths that the container does not have",
        "only body and drafter are mounted, read-only and without links out of them",
        "seed 000, 'Drafter materialization note'", _mounts,
    ),
    Rule(
        "one-served-name", Severity.WARNING, "several names for an image that takes one",
        "its variable holds one name", "seed 002, configuration table", _one_name,
    ),
    Rule(
        "old-tag", Severity.WARNING, "a tag older than the one to roll back to",
        "what the newer tags fixed is missing", "the images' tags in the catalog", _tag_of_recipe,
    ),
)  # fmt: skip
