"""Resolving what the plan leaves open: tags to digests, revisions to commits.

Done once per run on the controller, side by side, so that all hosts run the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparkwright.catalog import Catalog
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.resolve.git import resolve_commit
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.references import ImageReference, ModelReference, References
from sparkwright.resolve.registry import ResolvedImage, resolve_image
from sparkwright.resolve.registry_account import account


@dataclass(frozen=True)
class Resolution:
    """What the tags and revisions of a run were found to be.

    Attributes:
        images: by (registry, repository, tag).
        models: by (hub endpoint, repository, revision).
    """

    images: dict[tuple[str, str, str], ResolvedImage]
    models: dict[tuple[str, str, str], ResolvedModel]

    def image(self, reference: ImageReference) -> ResolvedImage:
        """The digest behind a planned image."""
        return self.images[reference.registry, reference.repository, reference.tag]

    def model(self, endpoint: str, reference: ModelReference) -> ResolvedModel:
        """The commit behind a planned model."""
        return self.models[endpoint, reference.repository, reference.revision]


def resolve(
    named: Iterable[References],
    catalog: Catalog,
    token: str | None,
    known: Mapping[tuple[str, str, str], ResolvedModel] = MappingProxyType({}),
) -> Resolution:
    """Ask registries and hubs for everything that the plans name.

    Args:
        known: models that were asked for already in this run.

    Raises:
        UserError: every tag and revision that could not be resolved.
    """
    named = list(named)
    images: dict[tuple[str, str, str], tuple[ImageReference, str | None]] = {
        (image.registry, image.repository, image.tag): (
            image,
            account(one.registry_auth, registry_of(image)),
        )
        for one in named
        for image in one.images
    }
    models = model_names(named)
    problems: list[Finding] = []
    with ThreadPoolExecutor(max_workers=8) as pool:
        image_jobs = {key: pool.submit(_image, *image) for key, image in images.items()}
        # A token in clear text on the network is nobody's secret any more.
        model_jobs = {
            key: pool.submit(resolve_model, *key, token if key[0].startswith("https://") else None)
            for key in models
            if key not in known
        }
        resolved_images: dict[tuple[str, str, str], ResolvedImage] = {}
        resolved_models = {key: known[key] for key in models if key in known}
        for key, image_job in image_jobs.items():
            try:
                resolved_images[key] = image_job.result()
            except UserError as error:
                problems += error.findings
        for key, model_job in model_jobs.items():
            try:
                resolved_models[key] = model_job.result()
            except UserError as error:
                problems += error.findings
    found = Resolution(resolved_images, resolved_models)
    problems.extend(known_bad(models, catalog, found))
    if problems:
        raise UserError(problems)
    return found


def known_bad(
    names: Mapping[tuple[str, str, str], str], catalog: Catalog, resolution: Resolution
) -> list[Finding]:
    """Commits that the catalog knows to be bad.

    Args:
        names: (hub endpoint, repository, revision) -> name of the model in the catalog.
    """
    return [
        problem
        for key, name in names.items()
        if key in resolution.models
        and (problem := _too_old(catalog, name, resolution.models[key])) is not None
    ]


def model_names(named: Iterable[References]) -> dict[tuple[str, str, str], str]:
    """(hub endpoint, repository, revision) -> name in the catalog, of everything planned."""
    return {
        (one.hub_endpoint, model.repository, model.revision): model.name
        for one in named
        for model in one.models
    }


def registry_of(reference: ImageReference) -> str:
    """``http(s)://host[:port]`` that an image, or the base of a built one, is pulled from."""
    return reference.build.base.registry if reference.build else reference.registry


def _image(reference: ImageReference, credentials: str | None) -> ResolvedImage:
    """An image of a registry, or one that is built over such an image."""
    if reference.build is None:
        return resolve_image(reference, credentials)
    commit = resolve_commit(reference.build.context, reference.tag)
    return replace(resolve_image(reference.build.base, credentials), commit=commit)


def _too_old(catalog: Catalog, name: str, resolved: ResolvedModel) -> Finding | None:
    model = catalog.models[name]
    if model.not_before is None or resolved.last_modified is None:
        return None
    if resolved.last_modified >= model.not_before:
        return None
    return mistake(
        f"model {model.repository}@{model.revision}",
        f"commit {resolved.commit[:12]} is of {resolved.last_modified}; "
        f"revisions before {model.not_before} are known to be bad",
        f"take a newer revision ({model.source})",
    )
