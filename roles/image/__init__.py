"""Image: pulled by digest, so that all hosts run the same bytes, by a job on the host.

An image that no registry has is built by such a job instead, over a base pulled by digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from pyinfra.api.host import Host

from roles import remote, sharing, site, steps, weights
from roles.contents import image_content, missing_images
from roles.weights import runtime
from sparkwright.host import jobs as jobs_program
from sparkwright.host.contracts.fetch import (
    BuildFile,
    FetchFile,
    FetchRequest,
    ImageBuild,
    PullRequest,
)
from sparkwright.preflight.judge import Pull
from sparkwright.resolve.build_context import BuildContextError, build_context
from sparkwright.resolve.references import BuildReference
from sparkwright.resolve.registry import ARCHITECTURES, PlatformImage
from sparkwright.resolve.registry_account import account

CACHE = Path(".sparkwright/cache/build")
#: One host at a time fills the cache; the others find it filled.
_FETCHING = Lock()


def image() -> None:
    """Start pulling what is missing."""
    steps.step("Image: pull", _pending, _act)


def job_name(image: str) -> str:
    """One job per image and digest."""
    return f"sparkwright-pull-{hashlib.sha256(image.encode()).hexdigest()[:12]}"


def state_directory(run: site.HostRun, image: str) -> str:
    """Where the job keeps request and progress."""
    return f"{run.plan.settings.services_root}/state/{job_name(image)}"


def _verb(pull: Pull) -> str:
    return "build" if pull.reference is not pull.release.service.image else "pull"


def _words(pull: Pull) -> str:
    service = pull.release.service
    return f"{service.image.name} ({pull.release.image.rpartition(':')[2][:19]})"


def _pending(run: site.HostRun) -> Sequence[str]:
    return [f"{_verb(pull)} {_words(pull)}" for pull in missing_images(run).values()]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    home = runtime.ensure(host, run)
    todo = missing_images(run)
    secrets = {sharing.token_file(run): site.share_token()}
    jobs = []
    for image, pull in todo.items():
        state = state_directory(run, image)
        login = account(run.plan.settings.registry_auth_file, pull.reference.registry)
        login_file = f"{state}/account" if login else None
        if login_file and login:
            secrets[login_file] = login
        request = _request(run, pull, state, login_file)
        jobs.append(
            {
                "unit": job_name(image),
                "description": f"sparkwright: {_verb(pull)} {image}",
                "argv": runtime.command(home, "pull", f"{state}/request.json"),
                "files": {f"{state}/request.json": json.dumps(asdict(request))},
            }
        )
    remote.ask(host, "sparkwright-jobs", jobs_program, {"start": jobs, "secrets": secrets})
    return [f"{_verb(pull)}ing {_words(pull)}" for pull in todo.values()]


def _request(run: site.HostRun, pull: Pull, state: str, login_file: str | None) -> PullRequest:
    settings, planned = run.plan.settings, pull.release.service.image
    platform = _platform(run, pull)
    content = image_content(run, pull)
    path = f"{pull.reference.repository}@{pull.digest}"
    fetch = FetchRequest(
        source="registry",
        endpoint=pull.reference.registry,
        repo=pull.reference.repository,
        revision=pull.digest.partition(":")[2],
        destination=pull.store,
        state_dir=state,
        files=tuple(FetchFile(blob.hex, blob.size, blob.hex) for blob in platform.files),
        manifests=tuple(blob.hex for blob in platform.manifests),
        downloader="http",
        token_file=login_file,
    )
    return PullRequest(
        name=pull.release.image,
        source=f"127.0.0.1:{settings.seeding_port}/{path}",
        token_file=sharing.token_file(run),
        layers=tuple(layer.hex for layer in platform.layers),
        keep=sharing.seeds(run, content),
        build=_build(run, pull, planned.build) if planned.build else None,
        fetch=weights.with_settings(run, fetch, content),
    )


def _platform(run: site.HostRun, pull: Pull) -> PlatformImage:
    own = ARCHITECTURES.get(run.seen.architecture, run.seen.architecture)
    image = run.wanted.resolution.image(pull.release.service.image)
    return image.platforms[own]  # preflight has refused hosts that it has nothing for


def _build(run: site.HostRun, pull: Pull, build: BuildReference) -> ImageBuild:
    commit = run.wanted.resolution.image(pull.release.service.image).commit
    assert commit is not None, "a built image is resolved to a commit"
    brought = run.plan.settings.bundle
    cache = Path(brought, "build") if brought else CACHE
    try:
        with _FETCHING:
            files = build_context(build.context, commit, build.directory, cache)
    except BuildContextError as error:
        raise remote.HostError(str(error)) from None
    return ImageBuild(build.base_name, {path: BuildFile(*file) for path, file in files.items()})
