"""Resolution of tags to digests and of revisions to commits, and the lock that stores both.

The lock is a file in the user's repository. The lock's order is stable, so its diff shows the
changes of the hosts. With a lock a run queries no registry or hub.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sparkwright.catalog import Catalog, entries
from sparkwright.documents import bounds, yaml_text
from sparkwright.documents import text_files as files
from sparkwright.findings import user_error, validation
from sparkwright.findings.finding import Finding
from sparkwright.resolve import git, pinned_text
from sparkwright.resolve.build_context import build_context, digest
from sparkwright.resolve.credentials import account, over_https
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.references import Commit, ImageReference, ModelReference, References
from sparkwright.resolve.registry import ResolvedImage, ask_registry
from sparkwright.text.values import short

#: An image, ``host/path:tag``, or a model, ``repository@revision``.
_Name = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f]+$", max_length=1024)]


class Resolution(BaseModel):
    """Resolved tags and revisions of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    images: dict[_Name, ResolvedImage]
    models: dict[_Name, ResolvedModel]

    def image(self, reference: ImageReference) -> ResolvedImage:
        """The digest behind a planned image."""
        return self.images[reference.name]

    def model(self, reference: ModelReference) -> ResolvedModel:
        """The commit behind a planned model."""
        return self.models[reference.key]

    def add(self, other: Resolution) -> None:
        """Take over entries of another lock."""
        self.images.update(other.images)
        self.models.update(other.models)


def resolve(
    named: Sequence[References],
    token: str | None,
    asked_models: Mapping[str, ResolvedModel] = MappingProxyType({}),
) -> Resolution:
    """Query registries and hubs for everything that the plans name.

    Args:
        asked_models: models that this run has resolved already.

    Raises:
        UserError: the message names every tag and revision that could not be resolved.
    """
    images: dict[str, tuple[ImageReference, str | None, tuple[str, ...]]] = {}
    models: dict[str, tuple[References, ModelReference]] = {}
    for item in named:
        for image in item.images:
            if image.name not in images or image.pulled.key:
                credentials = account(item.registry_auth, image.pulled.registry)
                images[image.name] = image, credentials, item.private
        models |= {model.key: (item, model) for model in item.models}
    there = {key: asked_models[key] for key in models if key in asked_models}
    resolution = Resolution(images={}, models=there)
    problems = user_error.Problems()
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs: list[tuple[dict[str, Any], str, Any]] = [
            (resolution.images, key, pool.submit(_image, *image)) for key, image in images.items()
        ]
        for key, (item, model) in models.items():
            if key not in asked_models:
                hub = item.hub_endpoint
                query = (hub, model.repository, model.revision, over_https(token, hub))
                job = pool.submit(resolve_model, *query, private=item.private, choice=model.choice)
                jobs.append((resolution.models, key, job))
        for pins, key, job in jobs:
            with problems.collected():
                pins[key] = job.result()
    for image in (image for item in named for image in item.images):
        resolved = resolution.images.get(image.name)
        if resolved and not resolved.is_signed(image.pulled.key):
            problems.append(MESSAGES.mistake("unsigned", "image_keys", name=image.name))
    problems.stop()
    return resolution


def known_bad(named: References, catalog: Catalog, resolution: Resolution) -> Iterator[Finding]:
    """Commits that the catalog lists as bad."""
    for reference in named.models:
        model, resolved = catalog.models.get(reference.name), resolution.model(reference)
        if model and model.not_before and resolved.date and resolved.date < model.not_before:
            facts = {"commit": resolved.commit[:12], "date": resolved.date}
            facts |= {"least": model.not_before, "source": model.source}
            yield MESSAGES.mistake("known-bad", f"model {reference.key}", **facts)


def _image(
    image: ImageReference, credentials: str | None, private: tuple[str, ...]
) -> ResolvedImage:
    """An image of a registry, or an image that is built on an image of a registry."""
    pulled = image.pulled
    title, tag = f"image {pulled.pull_name}:{pulled.tag}", pulled.digest or pulled.tag
    query = (pulled.registry, pulled.repository, tag, credentials)
    resolved = ask_registry(*query, title=title, key=pulled.key, private=private)
    if image.build is None:
        return resolved
    return replace(resolved, commit=git.resolve_commit(image.build.context, image.tag, private))


_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)
_HEAD = """\
# Made by `sparkwright lock`: digests and commits of all tags and revisions. Commit this file.
# `sparkwright lock INVENTORY` adds missing entries, `--upgrade` replaces all entries.
"""


class Lock(Resolution):
    """All pins: images by ``host/path:tag``, models by ``repository@revision``, registries of
    recipes (their commit) by address, files of repositories by ``repository@commit/path``; for each
    recipe with patches, the images that the patches are made for, with their digests.
    """

    version: Literal[1] = 1
    registries: dict[str, Commit] | None = None
    files: dict[str, pinned_text.PinnedText] | None = None
    patched: dict[str, dict[_Name, entries.Digest]] | None = None

    @field_validator("models", mode="before")
    @classmethod
    def _with_repositories(cls, models: Any) -> Any:
        if not isinstance(models, dict):
            return models
        return {
            name: {**entry, "repository": str(name).partition("@")[0]}
            if isinstance(entry, dict)
            else entry
            for name, entry in models.items()
        }


def read_lock(path: pathlib.Path) -> Lock | None:
    """Read the lock; None if the file is missing.

    Raises:
        UserError: the file is not a lock.
    """
    if not path.exists():
        return None
    try:
        text = files.read(path)
        # An unresolved merge is not parsed as YAML: either side may be right.
        if mark := _CONFLICT.search(text):
            line = text.count("\n", 0, mark.start()) + 1
            raise MESSAGES.refusal("open-merge", f"{path}: line {line}")
        data = yaml_text.load(text)
        if isinstance(data, dict) and data.get("version", 1) != 1:
            raise MESSAGES.refusal("later-lock", str(path), version=short(data["version"]))
        return Lock.model_validate(data)
    except bounds.Unusable as error:
        where = error.place(str(path))
        raise MESSAGES.refusal("unusable-lock", where, problem=error.fault) from None
    except ValidationError as error:
        raise user_error.UserError(
            MESSAGES.mistake("unusable-lock", problem.subject.place, problem=problem.observed)
            for problem in validation.problems_of(error, str(path))
        ) from None


def from_resolution(
    named: Iterable[References],
    resolution: Resolution,
    kept: Lock | None,
    confirmed: Collection[str] = (),
) -> Lock:
    """A lock of everything that the plans name; pins of ``kept`` take precedence over new pins.

    Args:
        confirmed: recipes with patches that fit their images' present content. Other recipes keep
            their images from ``kept``.
    """
    pins = kept or Lock(images={}, models={})
    references, models = _references(named)
    images = {
        name: locked_image(pins, image) or resolution.images[name]
        for name, image in references.items()
    }
    former = {name: of for name, of in (pins.patched or {}).items() if name not in confirmed}
    patched = {name: former.get(name, bases) for name, bases in _bases(named, images).items()}
    return Lock(
        images=images,
        patched=patched or None,
        models={
            key: locked_model(pins, model) or resolution.models[key]
            for key, model in models.items()
        },
        registries=pins.registries,
        files=_files(named) or None,
    )


def to_resolution(
    named: Iterable[References], lock: Lock, path: str, *, bases: bool = True
) -> Resolution:
    """Resolve everything that the plans name from the lock.

    Args:
        bases: whether patches for an image other than the locked image are refused.

    Raises:
        UserError: the message names everything that is not locked, and every patch for another
            image.
    """
    images, models = _references(named)
    pinned = {key: pin for key, model in models.items() if (pin := locked_model(lock, model))}
    there = {name: entry for name, image in images.items() if (entry := locked_image(lock, image))}
    missing = (
        *(images.keys() - there.keys()), *(models.keys() - pinned.keys()),
        *(_files(named).keys() - (lock.files or {}).keys()),
    )  # fmt: skip
    problems = user_error.Problems(changed_bases(named, lock, path) if bases else ())
    problems += (
        MESSAGES.mistake("unsigned" if name in lock.images else "not-locked", path, name=name)
        for name in sorted(missing)
    )
    problems.stop()
    return Resolution(images=there, models=pinned)


def changed_bases(named: Iterable[References], lock: Lock, path: str) -> Iterator[Finding]:
    """Report patches that are made for an image other than the locked image."""
    for recipe, images in sorted(_bases(named, lock.images).items()):
        former = (lock.patched or {}).get(recipe)
        if former is None:
            missing = f"the base of recipe {recipe}'s patches"
            yield MESSAGES.mistake("not-locked", path, name=missing)
            continue
        before = " and ".join(f"{name} at {digest}" for name, digest in sorted(former.items()))
        for name in sorted(name for name in images if images[name] != former.get(name)):
            facts = {"recipe": recipe, "before": before, "name": name, "digest": images[name]}
            yield MESSAGES.mistake("changed-base", f"{path}: patched.{recipe}", **facts)


def _bases(
    named: Iterable[References], images: Mapping[str, ResolvedImage]
) -> dict[str, dict[str, str]]:
    """Recipe with patches -> the images that the patches change, with their digests."""
    result: dict[str, dict[str, str]] = {}
    for image in (image for item in named for image in item.images):
        if image.steps and image.name in images:
            result.setdefault(image.steps.recipe, {})[image.name] = images[image.name].digest
    return result


def _references(
    named: Iterable[References],
) -> tuple[dict[str, ImageReference], dict[str, ModelReference]]:
    """All images by name, and all models by ``repository@revision``."""
    images: dict[str, ImageReference] = {}
    models: dict[str, ModelReference] = {}
    for item in named:
        for image in item.images:
            if image.pulled.key or image.name not in images:
                images[image.name] = image
        models |= {model.key: model for model in item.models}
    return images, models


def _files(named: Iterable[References]) -> dict[str, pinned_text.PinnedText]:
    """All files of repositories, by ``repository@commit/path``."""
    return {name: pin for item in named for name, pin in item.files.items()}


def locked_image(lock: Lock, image: ImageReference) -> ResolvedImage | None:
    """An image's pin; None if the lock lacks the pin, or a signature of the named key."""
    result = lock.images.get(image.name)
    return result if result and result.is_signed(image.pulled.key) else None


def locked_model(lock: Lock, model: ModelReference) -> ResolvedModel | None:
    """A model's pin; None if the lock lacks the pin, or a required part of the pin."""
    result = lock.models.get(model.key)
    return None if result and model.facts and result.facts is None else result


def unused(named: Iterable[References], lock: Lock) -> list[str]:
    """Pins that no host needs any more."""
    images, models = _references(named)
    pins = {*lock.images, *lock.models, *(lock.files or ())}
    return sorted(pins - {*images, *models, *_files(named)})


def with_contexts(named: Iterable[References], lock: Lock, cache: pathlib.Path) -> Lock:
    """The lock with the hash of every build context; git fetches missing contexts.

    Raises:
        UserError: the message names every context that can't be fetched.
    """
    images = dict(lock.images)
    problems = user_error.Problems()
    for image in _references(named)[0].values():
        locked = images[image.name]
        if image.build is None or locked.commit is None or locked.context is not None:
            continue
        with problems.collected():
            files = build_context(image.build.context, locked.commit, image.build.directory, cache)
            images[image.name] = replace(locked, context=digest(files))
    problems.stop()
    return lock.model_copy(update={"images": images})


def without_contexts(named: Iterable[References], lock: Lock) -> list[str]:
    """Built images without a pin of their context in the lock."""
    built = (name for name, image in _references(named)[0].items() if image.build)
    return sorted(name for name in built if name in lock.images and not lock.images[name].context)


def render_lock(lock: Lock) -> str:
    """The lock as text, sorted: equal pins give equal bytes."""
    data: dict[str, Any] = lock.model_dump(mode="json", exclude_none=True)
    return _HEAD + yaml.safe_dump(data, sort_keys=True, width=120, allow_unicode=True)
