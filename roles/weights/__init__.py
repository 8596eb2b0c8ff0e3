"""Weights: body and drafter at their pinned commits, fetched by jobs that run on the host.

What runs there is brought by the controller, for the host's architecture and Python: hosts need
no way to PyPI. ``roles.jobs.fetched`` waits for the jobs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from pyinfra.api.host import Host

from roles import remote, sharing, site, steps
from roles.contents import missing_models, model_content
from roles.weights import runtime
from sparkwright.host import jobs as jobs_program
from sparkwright.host.contracts.fetch import ExpectedContents, FetchFile, FetchRequest
from sparkwright.host.lib.records import decode
from sparkwright.plan.plan import GIB
from sparkwright.resolve.hub import ResolvedModel


def weights() -> None:
    """Start fetching what is missing."""
    steps.step("Weights: fetch", _pending, _act)


def job_name(model: ResolvedModel) -> str:
    """One job per repository and commit: a later run finds it instead of starting another."""
    digest = hashlib.sha256(model.directory.encode()).hexdigest()[:12]
    return f"sparkwright-fetch-{digest}"


def state_directory(run: site.HostRun, model: ResolvedModel) -> str:
    """Where the job keeps request and progress."""
    return f"{run.plan.settings.services_root}/state/{job_name(model)}"


def _pending(run: site.HostRun) -> Sequence[str]:
    return [
        f"fetch {model.repository}@{model.commit[:12]} ({model.size / GIB:.2f} GiB): {directory} "
        f"{run.seen.models.get(directory)}"
        for directory, model in missing_models(run).items()
    ]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    settings = run.plan.settings
    home = runtime.ensure(host, run)
    token = f"{settings.services_root}/state/hub-token" if run.token else None
    secrets = {sharing.token_file(run): site.share_token()}
    if token and run.token:
        secrets[token] = run.token.value
    jobs = []
    for directory, model in missing_models(run).items():
        state = state_directory(run, model)
        request = FetchRequest(
            endpoint=settings.hub_endpoint,
            repo=model.repository,
            revision=model.commit,
            destination=directory,
            state_dir=state,
            files=tuple(FetchFile(**file) for file in model.manifest()),
            downloader=settings.weights_mover,
            token_file=token,
            expect=decode(ExpectedContents, run.wanted.expected(model.repository)),
            adopt=tuple(settings.adopt_directories),
        )
        fetch = with_settings(run, request, model_content(model))
        jobs.append(
            {
                "unit": job_name(model),
                "description": f"sparkwright: fetch {model.repository}@{model.commit[:12]}",
                "argv": runtime.command(home, "run", f"{state}/request.json"),
                "files": {f"{state}/request.json": json.dumps(asdict(fetch))},
            }
        )
    remote.ask(host, "sparkwright-jobs", jobs_program, {"start": jobs, "secrets": secrets})
    return [
        f"fetching {model.repository}@{model.commit[:12]}" for model in missing_models(run).values()
    ]


def with_settings(run: site.HostRun, request: FetchRequest, content: str) -> FetchRequest:
    """A fetch's request with what models and images have in common."""
    settings = run.plan.settings
    limit = settings.fetch_limit_mb
    return replace(
        request,
        owner="root:root",
        max_connections=settings.weights_connections,
        headroom=int(settings.disk_headroom_gib * GIB),
        limit=limit * 1e6 if limit else None,
        peers=tuple(sharing.peers_of(run, content)),
        peer_token_file=sharing.token_file(run),
        offline=settings.bundle is not None,
    )
