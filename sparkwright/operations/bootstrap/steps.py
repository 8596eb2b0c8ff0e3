"""A step of bootstrap, made from pyinfra's own operations.

Before each step the host records how to undo the step (``host/bootstrap/prepare.py``), so an
interrupted step can be undone like a finished step, and a new run continues the step.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from io import StringIO

from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.context import ctx_state
from pyinfra.operations import apt, files, server, systemd

from sparkwright.bootstrap.openpgp import key_text
from sparkwright.bootstrap.package_sources import Repository
from sparkwright.bootstrap.steps import StepPlan, sums
from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.others import Ours, fail
from sparkwright.host.bootstrap import prepare
from sparkwright.host.bootstrap.prepare import PrepareRequest
from sparkwright.operations.files import show_diff
from sparkwright.operations.lib import locks
from sparkwright.operations.lib.changing import Commands, announce, operation

#: Seconds to wait for apt's lock and for the installation of a package.
_SECONDS = 1800
_LOCK = "-o DPkg::Lock::Timeout=600"


@operation()
def done(
    step: StepPlan,
    *,
    user: str,
    key: Callable[[Repository], str] = key_text,
    texts: Mapping[str, str | None] | None = None,
) -> Commands:
    """Carry out a step, with ``_sudo=True`` and a sudo that needs no password.

    Args:
        step: the step, reduced to its missing parts (``bootstrap.decide``).
        user: user who logs in, for the group that the step adds.
        key: function that returns a repository's signing key, armoured; raises UserError.
        texts: texts of the existing files, for ``--diff``.

    **Example:**

    .. code:: python

        from sparkwright.bootstrap.steps import StepPlan, sums

        steps.done(
            step=StepPlan("earlyoom", ("install earlyoom",), packages=("earlyoom",)),
            user="ann", _sudo=True,
        )
    """
    announce(step.would)
    executing = ctx_state.get().is_executing
    for path, text in step.files.items():
        if not executing:
            show_diff(path, (texts or {}).get(path), text)
    written = _repository(step.repository, key) if executing else {}
    yield Ours(_prepare, (step, written), {})
    for path, text in written.items():
        yield from _file(path, text)
    if step.packages:
        yield from apt.packages._inner(
            packages=list(step.packages), update=True, no_recommends=True,
            extra_install_args=_LOCK,
        )  # fmt: skip
    for path, text in step.files.items():
        yield from _file(path, text)
    if step.group:
        yield from server.user._inner(
            user=user, groups=[step.group], append=True, ensure_home=False
        )
    yield from (StringCommand(*map(QuoteString, command)) for command in step.commands)
    units = dict.fromkeys((*step.enables, *step.restarts))
    if any(path.startswith("/etc/systemd/system/") for path in step.files):
        yield from systemd.daemon_reload._inner()
    for unit in units:
        yield from systemd.service._inner(
            unit,
            running=True,
            restarted=unit in step.restarts,
            enabled=True if unit in step.enables else None,
        )


def _repository(repository: Repository | None, key: Callable[[Repository], str]) -> dict[str, str]:
    """Write the repository's files: the key before the list that names it.

    The function writes files instead of using apt.key and apt.sources_file, which need gnupg on the
    host and check no fingerprint; a bare host has no gnupg.
    """
    return (
        {repository.key_file: key(repository), repository.list_file: repository.text}
        if repository
        else {}
    )


def _file(path: str, text: str) -> Commands:
    yield from files.put._inner(
        src=StringIO(text), dest=path, user="root", group="root", mode="0644"
    )


def _prepare(state: State, host: Host, step: StepPlan, written: Mapping[str, str]) -> bool:
    undo = step.undo
    if not undo.apart:
        undo = replace(undo, files={**undo.files, **sums(written)})
    request = PrepareRequest(step.name, undo, bool(step.packages), step.sudoers)
    try:
        locks.take(host)
        changed = ask(host, prepare, request, tuple[str, ...], timeout=_SECONDS)
    except HostError as error:
        return fail(state, host, str(error).splitlines())
    memory(host).changes += changed
    memory(host).forget()
    return True
