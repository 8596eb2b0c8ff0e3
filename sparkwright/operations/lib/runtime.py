"""The fetch program and its libraries on a host, sent by the controller.

The libraries fit the host's architecture, so that hosts need no access to PyPI.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path, PurePosixPath
from threading import Lock

from pyinfra.api.host import Host

from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import laid_out
from sparkwright.resolve.runtime import (
    Runtime,
    RuntimeBundleError,
    build_runtime,
    carried_runtime,
)

_ENTRY = "sparkwright/host/fetch/fetch.py"
CACHE = Path(".sparkwright/cache")
#: Hosts of one architecture share a bundle: the bundle is built for one host, and the other hosts
#: wait.
_BUILD = Lock()


def ensure(host: Host, services_root: str, bundle: str | None = None) -> str:
    """Install the program and its libraries on the host, if they are missing. Returns their
    directory.

    Args:
        bundle: directory made by ``sparkwright bundle`` to take the libraries from.

    Raises:
        HostError: the libraries can't be fetched, or the host does not answer.
    """
    seen = observed(host)
    libraries = _libraries(seen.architecture, bundle)
    program = hashlib.sha256(repr(sorted(_program().items())).encode()).hexdigest()
    name = f"{libraries.digest[:16]}-{program[:8]}"
    home = f"{services_root}/runtime/{name}"
    installed = memory(host).runtimes | set(seen.runtimes)
    if name not in installed:
        from sparkwright.host import install_runtime  # imports tarfile

        request = install_runtime.RuntimeRequest(
            home=home,
            digest=libraries.digest,
            archive=base64.b64encode(libraries.path.read_bytes()).decode(),
            program=_program(),
        )
        ask(host, install_runtime, request, object, timeout=600)
        memory(host).runtimes.add(name)
    return home


def command(home: str, task: str, request: str) -> tuple[str, ...]:
    """The command of a job that runs a task of the program."""
    arguments = ("/usr/bin/python3", "-I", "-S", f"{home}/{_ENTRY}", "--task", task)
    return (*arguments, "--runtime", f"{home}/packages", request)


def _libraries(architecture: str, bundle: str | None) -> Runtime:
    with _BUILD:
        try:
            if bundle:
                return carried_runtime(architecture, Path(bundle, "runtime"))
            return build_runtime(architecture, CACHE)
        except RuntimeBundleError as error:
            raise HostError(str(error)) from None


@cache
def _program() -> dict[str, str]:
    """The sources of the fetch program and its messages, by path below its home."""
    # The import takes 7 ms, and only runs that fetch need it.
    from sparkwright.host.fetch import fetch, job, messages, peer_server, pull, worker

    texts = messages.MESSAGES
    path = str(PurePosixPath(_ENTRY).with_name(texts.name))
    # fetch.py imports each of these modules by the name of its task.
    programs = laid_out("", fetch, job, pull, peer_server, worker)
    return programs | {path: texts.read_text(encoding="utf-8")}
