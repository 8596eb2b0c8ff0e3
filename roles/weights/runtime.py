"""What fetching needs on a host: the program of host/ and its libraries, brought by the controller.

For the host's architecture and Python, so that hosts need no way to PyPI.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from threading import Lock

from pyinfra.api.host import Host

from roles import remote, site
from sparkwright.facts.programs import laid_out
from sparkwright.host import install_runtime as install_program
from sparkwright.host.fetch import fetch, peer_server, pull, run, worker
from sparkwright.resolve.runtime import Runtime, RuntimeBundleError, build_runtime

#: Each module that fetch.py names by its task.
_PROGRAMS = (fetch, run, pull, peer_server, worker)
_ENTRY = "sparkwright/host/fetch/fetch.py"
CACHE = Path(".sparkwright/cache")
#: One bundle serves all hosts of one kind: build it once, not once per host at the same time.
_BUILD = Lock()


def ensure(host: Host, host_run: site.HostRun) -> str:
    """Put program and libraries there, if they are not. Returns their directory."""
    seen, settings = host_run.seen, host_run.plan.settings
    bundle = _bundle(seen.architecture, seen.python, settings.bundle)
    name = f"{bundle.digest[:16]}-{_program_digest()[:8]}"
    home = f"{settings.services_root}/runtime/{name}"
    if name not in seen.runtimes:
        request = {
            "home": home,
            "digest": bundle.digest,
            "archive": base64.b64encode(bundle.path.read_bytes()).decode(),
            "program": program(),
        }
        remote.ask(host, "sparkwright-runtime", install_program, request, timeout=600)
        seen.runtimes.append(name)
    return home


def command(home: str, task: str, request: str) -> list[str]:
    """The command of a job that runs a task of the program."""
    words = ["/usr/bin/python3", "-I", "-S", f"{home}/{_ENTRY}", "--task", task]
    return [*words, "--runtime", f"{home}/packages", request]


def _bundle(architecture: str, python: tuple[int, int], brought: str | None) -> Runtime:
    with _BUILD:
        try:
            cache_ = Path(brought, "runtime") if brought else CACHE
            return build_runtime(architecture, f"{python[0]}.{python[1]}", cache_)
        except RuntimeBundleError as error:
            raise remote.HostError(str(error)) from None


@cache
def program() -> dict[str, str]:
    """The sources of the fetch program, by path below its home."""
    return laid_out("", *_PROGRAMS)


@cache
def _program_digest() -> str:
    return hashlib.sha256(repr(sorted(program().items())).encode()).hexdigest()
