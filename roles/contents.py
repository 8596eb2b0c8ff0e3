"""What a host still lacks, by the probe, and what hosts can take from each other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from roles.site import HostRun
from sparkwright.plan.desired import Pull
from sparkwright.resolve.hub import ResolvedModel


def missing_models(run: HostRun) -> dict[str, ResolvedModel]:
    """Models that are not there, or not as their receipt says, by directory."""
    return {
        directory: model
        for directory, model in run.wanted.models().items()
        if run.seen.models.get(directory, "not asked") is not None
    }


def missing_images(run: HostRun) -> dict[str, Pull]:
    """Images that are not on the host, by the name that they get there."""
    return {
        pull.release.image: pull
        for pull in run.wanted.pulls()
        if not run.seen.images.get(pull.release.image, False)
    }


def unwritten(run: HostRun, wanted: Mapping[str, tuple[str, int]]) -> list[str]:
    """Files that are not there with this text and mode, as words."""
    return [
        f"write {path}"
        for path, (text, mode) in wanted.items()
        if run.seen.files.get(path) != f"{hashlib.sha256(text.encode()).hexdigest()} {mode:o}"
    ]


def model_content(model: ResolvedModel) -> str:
    """What a model is called among hosts that share it."""
    return f"{model.repository}@{model.commit}"


def image_content(run: HostRun, pull: Pull) -> str:
    """What an image is called among hosts that share it: hosts of one architecture."""
    return f"{pull.reference.name} {pull.digest} {run.seen.architecture}"


def contents(run: HostRun) -> dict[str, bool]:
    """Everything that the host can take (true) or give (false).

    An image can be given only while its parts are kept: Docker has them unpacked.
    """
    lacking: dict[str, bool] = {}
    models, images = missing_models(run), missing_images(run)
    for directory, model in run.wanted.models().items():
        lacking[model_content(model)] = directory in models
    for pull in run.wanted.pulls():
        if pull.release.image in images:
            lacking[image_content(run, pull)] = True
        elif pull.store in run.seen.stores:
            lacking[image_content(run, pull)] = False
    return lacking
