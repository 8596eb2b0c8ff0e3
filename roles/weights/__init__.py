"""Weights: body and drafter at their pinned commits, fetched by jobs that run on the host.

What runs there is brought by the controller, for the host's architecture and Python: hosts need
no way to PyPI. ``roles.jobs.fetched`` waits for the jobs.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.jobs.host import jobs as jobs_program
from roles.weights.host import install as install_program
from sparkwright.hub import ResolvedModel
from sparkwright.plan import GIB
from sparkwright.runtime import Runtime, RuntimeBundleError, build_runtime

PROGRAM = Path(__file__).parent / "host"
#: Modules of host/ that are the fetch program; install.py only puts it there.
_NOT_FETCH = {"install.py", "rehash.py"}
CACHE = Path(".sparkwright/cache")
#: One bundle serves all hosts of one kind: build it once, not once per host at the same time.
_BUILD = Lock()


def weights() -> None:
    """Start fetching what is missing."""
    steps.step("Weights: fetch", _pending, _act)


def missing(run: site.HostRun) -> dict[str, ResolvedModel]:
    """Models that are not there, or not as their receipt says, by directory."""
    return {
        directory: model
        for directory, model in run.wanted.models().items()
        if run.seen.models.get(directory, "not asked") is not None
    }


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
        for directory, model in missing(run).items()
    ]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    settings = run.plan.settings
    bundle = _bundle(run.seen.architecture, run.seen.python)
    name = f"{bundle.digest[:16]}-{_program_digest()[:8]}"
    home = f"{settings.services_root}/runtime/{name}"
    if name not in run.seen.runtimes:
        request = {
            "home": home,
            "digest": bundle.digest,
            "archive": base64.b64encode(bundle.path.read_bytes()).decode(),
            "program": _program(),
        }
        remote.ask(host, "sparkwright-runtime", (install_program,), request, timeout=600)
    token = f"{settings.services_root}/state/hub-token" if run.token else None
    jobs = []
    for directory, model in missing(run).items():
        state = state_directory(run, model)
        fetch = {
            "endpoint": settings.hub_endpoint,
            "repo": model.repository,
            "revision": model.commit,
            "destination": directory,
            "state_dir": state,
            "files": model.manifest(),
            "owner": "root:root",
            "mover": settings.weights_mover,
            "max_connections": settings.weights_connections,
            "token_file": token,
            "headroom": int(settings.disk_headroom_gib * GIB),
            "expect": run.wanted.expected(model.repository),
        }
        jobs.append(
            {
                "unit": job_name(model),
                "description": f"sparkwright: fetch {model.repository}@{model.commit[:12]}",
                "argv": [
                    "/usr/bin/python3",
                    "-I",
                    "-S",
                    f"{home}/fetch/fetch.py",
                    "--runtime",
                    f"{home}/packages",
                    f"{state}/request.json",
                ],
                "files": {f"{state}/request.json": fetch},
            }
        )
    start = {"start": jobs, "secrets": {token: run.token.value} if token and run.token else {}}
    remote.ask(host, "sparkwright-jobs", (jobs_program,), start)
    return [f"fetching {model.repository}@{model.commit[:12]}" for model in missing(run).values()]


def _bundle(architecture: str, python: tuple[int, int]) -> Runtime:
    with _BUILD:
        try:
            return build_runtime(architecture, f"{python[0]}.{python[1]}", CACHE)
        except RuntimeBundleError as error:
            raise remote.HostError(str(error)) from None


@cache
def _program() -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(PROGRAM.glob("*.py"))
        if path.name not in _NOT_FETCH
    }


@cache
def _program_digest() -> str:
    return hashlib.sha256(repr(sorted(_program().items())).encode()).hexdigest()
