"""Measuring the fabric: steps that several hosts do at the same time, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra.api.host import Host

from sparkwright.facts.asking import HostError, ask
from sparkwright.host import fabric_measure
from sparkwright.host.fabric_measure import MeasureAnswer, MeasureRequest, Plan
from sparkwright.run.questions import answered

#: Seconds: an all-gather has three minutes, and Docker one for what was left of another.
_SECONDS = 330
#: Takes a host's answer to one step.
Told = Callable[[MeasureAnswer], None]


def measured(host: Host, planned: Plan, told: Told) -> None:
    """This host's steps; those of other hosts stand between them, in the same order on all.

    Raises HostError within the steps alone: what one does not answer is missing in the answers.
    """
    name = host.name
    if name in planned.pings:
        _step("Fabric: ping", MeasureRequest(pings=planned.pings[name]), told)
    for pair in host.loop(planned.pairs):
        if name == pair.server:
            _step("Fabric: ib_write_bw listens", MeasureRequest(listen=pair.listen), told)
        if name == pair.client:
            _step("Fabric: ib_write_bw writes", MeasureRequest(write=pair.write), told)
    if name in planned.gathers:
        _step("Fabric: all-gather", MeasureRequest(gather=planned.gathers[name]), told)


def _step(name: str, request: MeasureRequest, told: Told) -> None:
    def question(host: Host) -> Sequence[str]:
        try:
            told(ask(host, fabric_measure, request, MeasureAnswer, timeout=_SECONDS))
        except HostError as error:
            return str(error).splitlines()
        return ()

    answered(name=name, question=question)
