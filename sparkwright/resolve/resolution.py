"""Resolving what the plan leaves open: tags to digests, revisions to commits.

Done once per run on the controller, side by side, so that all hosts run the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

from sparkwright.catalog import Catalog
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Problems
from sparkwright.resolve.credentials import account
from sparkwright.resolve.git import resolve_commit
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.references import ImageReference, ModelReference, References
from sparkwright.resolve.registry import ResolvedImage, ask_registry

#: An image, ``host/path:tag``, or a model, ``repository@revision``.
_Name = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f]+$", max_length=1024)]


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
        """Take over what another one has."""
        self.images.update(other.images)
        self.models.update(other.models)


def resolve(
    named: Sequence[References],
    token: str | None,
    asked_models: Mapping[str, ResolvedModel] = MappingProxyType({}),
) -> Resolution:
    """Ask registries and hubs for everything that the plans name.

    Args:
        asked_models: models that were asked for already in this run.

    Raises:
        UserError: every tag and revision that could not be resolved.
    """
    images: dict[str, tuple[ImageReference, str | None, tuple[str, ...]]] = {}
    models: dict[str, tuple[References, ModelReference]] = {}
    for item in named:
        for image in item.images:
            if image.name not in images or image.pulled.key:
                credentials = account(item.registry_auth, image.pulled.registry)
                images[image.name] = image, credentials, item.private
        models |= {model.key: (item, model) for model in item.models}
    resolution = Resolution(
        images={}, models={key: asked_models[key] for key in models if key in asked_models}
    )
    problems = Problems()
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs: list[tuple[dict[str, Any], str, Any]] = [
            (resolution.images, key, pool.submit(_image, *image)) for key, image in images.items()
        ]
        for key, (item, model) in models.items():
            if key not in asked_models:
                # A token in clear text on the network is nobody's secret any more.
                hub = item.hub_endpoint
                shown = token if hub.startswith("https://") else None
                query = (hub, model.repository, model.revision, shown)
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
    """Commits that the catalog knows to be bad."""
    for reference in named.models:
        model, resolved = catalog.models.get(reference.name), resolution.model(reference)
        if model and model.not_before and resolved.date and resolved.date < model.not_before:
            facts = {"commit": resolved.commit[:12], "date": resolved.date}
            facts |= {"least": model.not_before, "source": model.source}
            yield MESSAGES.mistake("known-bad", f"model {reference.key}", **facts)


def _image(
    image: ImageReference, credentials: str | None, private: tuple[str, ...]
) -> ResolvedImage:
    """An image of a registry, or one that is built over such an image."""
    pulled = image.pulled
    title, tag = f"image {pulled.pull_name}:{pulled.tag}", pulled.digest or pulled.tag
    query = (pulled.registry, pulled.repository, tag, credentials)
    resolved = ask_registry(*query, title=title, key=pulled.key, private=private)
    if image.build is None:
        return resolved
    return replace(resolved, commit=resolve_commit(image.build.context, image.tag, private))
