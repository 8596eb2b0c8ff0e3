"""Image: pulled by digest, so that all hosts run the same bytes, by a job on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.jobs.host import jobs as jobs_program


def image() -> None:
    """Start pulling what is missing."""
    steps.step("Image: pull", _pending, _act)


def missing(run: site.HostRun) -> dict[str, str]:
    """Images that are not on the host, by digest reference, with the tag they came from."""
    return {
        release.image: release.service.image.tag
        for release in run.wanted.releases
        if not run.seen.images.get(release.image, False)
    }


def job_name(image: str) -> str:
    """One job per image and digest."""
    return f"sparkwright-pull-{hashlib.sha256(image.encode()).hexdigest()[:12]}"


def _pending(run: site.HostRun) -> Sequence[str]:
    return [f"pull {image} (tag {tag})" for image, tag in missing(run).items()]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    jobs = [
        {
            "unit": job_name(image),
            "description": f"sparkwright: pull {image}",
            "argv": ["/usr/bin/docker", "pull", "--quiet", image],
            "files": {},
        }
        for image in missing(run)
    ]
    remote.ask(host, "sparkwright-jobs", (jobs_program,), {"start": jobs, "secrets": {}})
    return [f"pulling {image} (tag {tag})" for image, tag in missing(run).items()]
