"""The lock: every tag pinned to digests, every revision to a commit with its files.

A file in the user's repository, in an order that does not change by itself, so that its diff is
what will change on the hosts. With it a run queries no registry or hub.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sparkwright.catalog.data import Straight
from sparkwright.catalog.entries import KvLayers
from sparkwright.documents import files, yaml_text
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.findings.validation import problems_of
from sparkwright.host.fetch.request import FetchFile
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.model_facts import ModelFacts
from sparkwright.resolve.model_recipe import ModelRecipe
from sparkwright.resolve.references import ModelReference, References
from sparkwright.resolve.registry import Blob, PlatformImage, ResolvedImage
from sparkwright.resolve.resolution import Resolution
from sparkwright.text.values import short

#: Never `--upgrade`: it would take away every pin, and not only the damage.
_RESTORE = (
    "take it back from version control (git restore FILE), or remove the entry: "
    "sparkwright lock INVENTORY adds what is missing"
)
_MERGE = (
    "keep one side whole (git checkout --ours FILE, or --theirs): "
    "sparkwright lock INVENTORY adds what is missing"
)
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)
_HEAD = """\
# Made by `sparkwright lock`: what every tag and revision of the fleet stands for. Commit it.
# `sparkwright lock INVENTORY` adds what is missing, `--upgrade` takes everything anew.
"""


class _Locked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


#: Both become names of directories, and words of commands.
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
#: Bytes; strict, since True and "12" are none.
_Size = Annotated[int, Field(strict=True, ge=0, le=2**50)]
#: A file below a model's directory.
_Path = Annotated[
    str,
    StringConstraints(pattern=r"^[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*$", max_length=1024),
    Straight,
]
#: An image, ``host/path:tag``, or a model, ``repository@revision``.
_Name = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f]+$", max_length=1024)]
_Architecture = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]+$")]


class LockedPlatform(_Locked):
    """One architecture of an image: bytes of what is pulled, by digest; ``layers`` in order."""

    digest: Digest
    manifests: dict[Digest, _Size]
    config: dict[Digest, _Size] = Field(min_length=1, max_length=1)
    layers: tuple[tuple[Digest, _Size], ...]

    @classmethod
    def of(cls, platform: PlatformImage) -> LockedPlatform:
        """What a registry answered, as the lock keeps it."""
        return cls(
            digest=platform.digest,
            manifests={blob.digest: blob.size for blob in platform.manifests},
            config={platform.config.digest: platform.config.size},
            layers=tuple((blob.digest, blob.size) for blob in platform.layers),
        )

    def platform(self) -> PlatformImage:
        """The same, as a run uses it."""
        return PlatformImage(
            self.digest,
            tuple(Blob(*pair) for pair in self.manifests.items()),
            Blob(*next(iter(self.config.items()))),
            tuple(Blob(*pair) for pair in self.layers),
        )


class LockedImage(_Locked):
    """What a tag stands for.

    ``commit`` and ``context`` (sha256 of the folder's files) for a built image, whose digest is its
    base's.
    """

    digest: Digest
    commit: Commit | None = None
    context: _Sha256 | None = None
    platforms: dict[_Architecture, LockedPlatform]


class LockedFile(_Locked):
    """One file: git's own hash for small ones, sha256 for the others."""

    size: _Size
    sha256: _Sha256 | None = None
    blob: Commit | None = None


class LockedModel(_Locked):
    """What a revision stands for; ``kv`` by its own config.json, ``facts`` by that and others, of a
    model that a service names without a recipe; ``recipe`` is what vLLM's own recipes say of it."""

    commit: Commit
    date: dt.date | None = None
    kv: tuple[KvLayers, ...] = ()
    facts: ModelFacts | None = None
    recipe: ModelRecipe | None = None
    files: dict[_Path, LockedFile]

    def model(self, repository: str) -> ResolvedModel:
        """The same, as a run uses it."""
        return ResolvedModel(
            repository,
            self.commit,
            self.date,
            tuple(
                FetchFile(name, file.size, file.sha256, file.blob)
                for name, file in self.files.items()
            ),
            self.kv,
            self.facts,
            self.recipe,
        )


class Lock(_Locked):
    """All pins: images by ``host/path:tag``, models by ``repository@revision``, packages that a
    bundle brings by file name, registries of recipes (their commit) by address."""

    version: Literal[1] = 1
    images: dict[_Name, LockedImage]
    models: dict[_Name, LockedModel]
    packages: dict[_Path, LockedFile] | None = None
    registries: dict[str, Commit] | None = None


def read_lock(path: Path) -> Lock | None:
    """The lock, or None where there is none.

    Raises:
        UserError: for a file that is no lock.
    """
    if not path.exists():
        return None
    try:
        text = files.read(path)
        # Between two sides of a merge no YAML is looked at: either may be right.
        if mark := _CONFLICT.search(text):
            line = text.count("\n", 0, mark.start()) + 1
            raise Unusable("a merge is not ended: its conflict markers are in it", _MERGE, line)
        data = yaml_text.load(text)
        if isinstance(data, dict) and data.get("version", 1) != 1:
            what = f"lock version {short(data['version'])} is not known"
            raise Unusable(what, "it is a later sparkwright's: upgrade this one")
        return Lock.model_validate(data)
    except Unusable as error:
        remedy = error.remedy if error.what.startswith(("a merge", "lock")) else _RESTORE
        raise UserError([mistake(error.place(str(path)), error.what, remedy)]) from None
    except ValidationError as error:
        problems = problems_of(error, str(path))
        raise UserError([replace(one, remedy=_RESTORE) for one in problems]) from None


def from_resolution(named: Iterable[References], resolution: Resolution, kept: Lock | None) -> Lock:
    """A lock of everything that the plans name; pins of ``kept`` go before the resolution's."""
    images: dict[str, LockedImage] = {}
    models: dict[str, LockedModel] = {}
    for one in named:
        for image in one.images:
            images[image.name] = (kept and kept.images.get(image.name)) or _image(
                resolution.image(image)
            )
        for model in one.models:
            key = f"{model.repository}@{model.revision}"
            found = locked_model(kept, model)
            models[key] = found or _model(resolution.model(one.hub_endpoint, model))
    return Lock(
        images=images,
        models=models,
        packages=kept.packages if kept else None,
        registries=kept.registries if kept else None,
    )


def to_resolution(named: Iterable[References], lock: Lock, path: str) -> Resolution:
    """What the lock says of everything that the plans name.

    Raises:
        UserError: for everything that is not locked.
    """
    found = Resolution({}, {})
    problems: dict[str, Finding] = {}
    for one in named:
        for reference in one.images:
            image = lock.images.get(reference.name)
            if image is None:
                problems[reference.name] = _unlocked(path, reference.name)
                continue
            found.images[reference.registry, reference.repository, reference.tag] = ResolvedImage(
                image.digest,
                {name: locked.platform() for name, locked in image.platforms.items()},
                image.commit,
                image.context,
            )
        for model in one.models:
            key = f"{model.repository}@{model.revision}"
            locked = locked_model(lock, model)
            if locked is None:
                problems[key] = _unlocked(path, key)
                continue
            found.models[one.hub_endpoint, model.repository, model.revision] = locked.model(
                model.repository
            )
    if problems:
        raise UserError(problems.values())
    return found


def locked_model(lock: Lock | None, model: ModelReference) -> LockedModel | None:
    """A model's pin; None where it is not there with all that is needed of it."""
    found = lock.models.get(f"{model.repository}@{model.revision}") if lock else None
    return None if found and model.facts and found.facts is None else found


def unused(named: Iterable[References], lock: Lock) -> list[str]:
    """Pins that no host needs any more."""
    named = list(named)
    needed = {image.name for one in named for image in one.images}
    needed |= {f"{model.repository}@{model.revision}" for one in named for model in one.models}
    return sorted({*lock.images, *lock.models} - needed)


def render_lock(lock: Lock) -> str:
    """The lock as text, sorted: the same pins give the same bytes."""
    data: dict[str, Any] = lock.model_dump(mode="json", exclude_none=True)
    return _HEAD + yaml.safe_dump(data, sort_keys=True, width=120, allow_unicode=True)


def _image(image: ResolvedImage) -> LockedImage:
    return LockedImage(
        digest=image.digest,
        commit=image.commit,
        context=image.context,
        platforms={name: LockedPlatform.of(platform) for name, platform in image.platforms.items()},
    )


def _model(model: ResolvedModel) -> LockedModel:
    return LockedModel(
        commit=model.commit,
        date=model.last_modified,
        kv=model.kv,
        facts=model.facts,
        recipe=model.recipe,
        files={
            file.path: LockedFile(size=file.size, sha256=file.sha256, blob=file.blob_id)
            for file in model.files
        },
    )


def _unlocked(path: str, name: str) -> Finding:
    return mistake(
        path,
        f"{name} is not locked",
        "run 'sparkwright lock INVENTORY' (with the same --data), and look at its diff",
    )
