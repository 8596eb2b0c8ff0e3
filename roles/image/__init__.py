"""Image: pulled by digest, so that all hosts run the same bytes, by a job on the host.

An image that no registry has is built by such a job instead, over a base pulled by digest.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.image.host import build as build_program
from roles.jobs.host import jobs as jobs_program
from sparkwright.build_context import BuildContextError, build_context
from sparkwright.plan import BuildReference
from sparkwright.release import Release

CACHE = Path(".sparkwright/cache/build")
#: One host at a time fills the cache; the others find it filled.
_FETCHING = Lock()


def image() -> None:
    """Start pulling what is missing."""
    steps.step("Image: pull", _pending, _act)


def missing(run: site.HostRun) -> dict[str, Release]:
    """Images that are not on the host, by the name that Docker is given."""
    return {
        release.image: release
        for release in run.wanted.releases
        if not run.seen.images.get(release.image, False)
    }


def job_name(image: str) -> str:
    """One job per image and digest."""
    return f"sparkwright-pull-{hashlib.sha256(image.encode()).hexdigest()[:12]}"


def _verb(release: Release) -> str:
    return "build" if release.service.image.build else "pull"


def _pending(run: site.HostRun) -> Sequence[str]:
    return [
        f"{_verb(release)} {image} (tag {release.service.image.tag})"
        for image, release in missing(run).items()
    ]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    todo = missing(run)
    jobs = [
        {
            "unit": job_name(image),
            "description": f"sparkwright: {_verb(release)} {image}",
            **(
                _build(run, release, release.service.image.build)
                if release.service.image.build
                else {"argv": ["/usr/bin/docker", "pull", "--quiet", image], "files": {}}
            ),
        }
        for image, release in todo.items()
    ]
    remote.ask(host, "sparkwright-jobs", (jobs_program,), {"start": jobs, "secrets": {}})
    return [
        f"{_verb(release)}ing {image} (tag {release.service.image.tag})"
        for image, release in todo.items()
    ]


def _build(run: site.HostRun, release: Release, build: BuildReference) -> dict[str, Any]:
    resolved = run.wanted.resolution.image(release.service.image)
    assert resolved.commit is not None, "a built image is resolved to a commit"
    try:
        with _FETCHING:
            files = build_context(build.context, resolved.commit, build.directory, CACHE)
    except BuildContextError as error:
        raise remote.HostError(str(error)) from None
    state = f"{run.plan.settings.services_root}/state/{job_name(release.image)}"
    request = {
        "image": release.image,
        "base": f"{build.base.pull_name}@{resolved.digest}",
        "base_name": build.base_name,
        "files": files,
    }
    program = inspect.getsource(build_program)
    return {
        "argv": ["/usr/bin/python3", "-IS", "-c", program, f"{state}/request.json"],
        "files": {f"{state}/request.json": request},
    }
