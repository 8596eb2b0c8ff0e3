"""Batched fact of a host, typed views of the fact's answer, and reuse of the answer within a
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase, ShortFactBase
from pyinfra.api.host import Host
from pyinfra.api.state import State

from sparkwright.facts import hooks, others
from sparkwright.facts.answers import HostError, parse
from sparkwright.facts.asking import Sudo, ask, command, label, root_if_possible
from sparkwright.facts.memory import memory
from sparkwright.host import observe
from sparkwright.host.observe import Observation, ObservationRequest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T")
#: Seconds until a host that does not answer an observation counts as lost.
_TIMEOUT = 60
_ANY = ObservationRequest()


class ProgramFact(FactBase[_T], Generic[_T]):
    """A fact that a host program answers, as root if sudo needs no password.

    Attributes:
        answer: type of the program's answer.
    """

    program: ModuleType
    answer: type

    def asking(self, request: DataclassInstance) -> StringCommand:
        """Command that contains the program and its request."""
        # pyinfra's own _sudo and its password apply to a separately requested fact.
        return root_if_possible(command(self.program, request))

    def process(self, output: list[str]) -> _T:
        """The program's answer, checked against its type."""
        try:
            answer: _T = parse(label(self.program), output, self.answer)
        except HostError as error:
            raise FactProcessError(str(error)) from None
        return answer


class HostObservation(ProgramFact[Observation]):
    """State of a host: GPU, driver, Docker, disks, memory, and sparkwright's files and services.

    The fact takes one remote execution, and changes nothing. The command itself contains the
    program, which runs as root if sudo needs no password: otherwise the answer has the reason, and
    only information that every user may read.

    **Example:**

    .. code:: python

        observation = host.get_fact(HostObservation)
        observation.gpu.gpus[0].driver
    """

    program, answer = observe, Observation

    def __init__(self) -> None:
        self._host: Host | None = None
        self._asked = _ANY

    def check_preconditions(self, state: State, host: Host) -> None:
        """Keep the host, which pyinfra passes to a fact only here; the fact has no
        preconditions.
        """
        self._host = host

    def command(
        self,
        models_root: str = _ANY.models_root,
        services_root: str = _ANY.services_root,
        directories: Sequence[str] = (),
        files: Sequence[str] = (),
        texts: Sequence[str] = (),
        images: Sequence[str] = (),
        ports: Sequence[int] = (),
        units: Sequence[str] = (),
    ) -> StringCommand:
        """Return the command; the arguments are fields of ``ObservationRequest``."""
        self._asked = ObservationRequest(
            models_root, services_root, tuple(directories), tuple(files), tuple(texts),
            tuple(images), ports=tuple(ports), units=tuple(units),
        )  # fmt: skip
        return self.asking(self._asked)

    def process(self, output: list[str]) -> Observation:
        """The program's answer, which later operations of the run reuse."""
        answer = super().process(output)
        # An observation without sudo, or with a smaller request, does not replace a better
        # observation.
        if self._host is not None and answer.sudo is None:
            host_memory = memory(self._host).asked
            if host_memory is None or joined(self._asked, host_memory) == self._asked:
                _remember(self._host, self._asked, answer)
        return answer


class View(ShortFactBase[_T], Generic[_T]):
    """A part of the host's observation, without a further remote execution.

    Attributes:
        nothing: value of a part of a host that did not answer.
    """

    fact = HostObservation
    nothing: ClassVar[Any] = None

    def part(self, observation: Observation) -> _T:
        """Return this view's part of an observation."""
        raise NotImplementedError

    def process_data(self, data: Observation | None) -> _T:
        """The view's value, for pyinfra; ``nothing`` if the host did not answer."""
        return self.nothing if data is None else self.part(data)


def observed(host: Host, needed: ObservationRequest | None = None) -> Observation:
    """Return the host's observation in this run; observe again if a fact is missing or the host has
    changed.

    Args:
        needed: further requirements by field name: models, images, files …

    Raises:
        HostError: the host does not answer.
    """
    host_memory = memory(host)
    wanted = joined(
        ObservationRequest(host_memory.models_root, host_memory.services_root), needed or _ANY
    )
    if host_memory.asked is not None and host_memory.observation is not None:
        wanted = joined(host_memory.asked, wanted)
        if not host_memory.stale and wanted == host_memory.asked:
            return host_memory.observation
    return observe_anew(host, wanted)


def observe_anew(host: Host, request: ObservationRequest) -> Observation:
    """Observe the host now, in one remote execution.

    Raises:
        HostError: the host does not answer.
    """
    # Without sudo the answer has all facts that need no root, and the reason why sudo failed.
    answer = ask(
        host, observe, request, Observation, sudo=Sudo.IF_POSSIBLE, timeout=_TIMEOUT, secrets=False
    )
    return _remember(host, request, answer)


def _remember(host: Host, request: ObservationRequest, answer: Observation) -> Observation:
    host_memory = memory(host)
    first = host_memory.observation is None
    host_memory.asked, host_memory.observation, host_memory.stale = request, answer, False
    if first:
        others.follow(host.state)
        hooks.share_facts(host, lambda fact, arguments: _shared(host, fact, arguments))
    return answer


def joined(before: ObservationRequest, wanted: ObservationRequest) -> ObservationRequest:
    """Join two requests into one; a root that differs from the default takes precedence."""
    more: dict[str, Any] = {
        name: root
        for name in ("models_root", "services_root")
        if (root := getattr(wanted, name)) != getattr(_ANY, name)
    }
    for field in fields(ObservationRequest):
        mine, other = getattr(before, field.name), getattr(wanted, field.name)
        if isinstance(mine, tuple):
            more[field.name] = tuple(dict.fromkeys((*mine, *other)))
        elif isinstance(mine, dict):
            more[field.name] = {**mine, **other}
    return replace(before, **more)


def _shared(host: Host, fact: type, arguments: dict[str, Any]) -> tuple[bool, Any]:
    """Return whether the last observation answers a fact, and the fact's value."""
    host_memory = memory(host)
    seen = host_memory.observation
    if seen is None or host_memory.stale or any(not key.startswith("_") for key in arguments):
        return False, None
    if fact is HostObservation:
        return True, seen
    if isinstance(fact, type) and issubclass(fact, View):
        return True, fact().part(seen)
    return False, None
