"""Hashing the weights of a host again, on demand: ``sparkwright verify INVENTORY``."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from sparkwright.host import verify_models as program

#: Seconds: 100 GB at 30 MB/s, the slowest disk worth serving from.
_TIMEOUT = 3600


def verify() -> None:
    """Hash every file of the planned models again; a wrong one fails the host."""
    steps.verify("Weights: hash again", _look)


def _look(host: Host, run: site.HostRun) -> Sequence[str]:
    directories = list(run.wanted.models())
    answers = remote.ask(
        host,
        "sparkwright-verify",
        program,
        {"directories": directories},
        timeout=_TIMEOUT,
    )
    wrong: list[str] = []
    for directory, answer in answers.items():
        size, seconds = answer["bytes"] / 1e9, max(answer["seconds"], 1e-3)
        host.log(
            f"{directory}: {answer['files']} files, {size:.2f} GB in {seconds:.1f} s "
            f"({size / seconds:.2f} GB/s), {len(answer['wrong'])} wrong"
        )
        wrong += [f"{directory}: {fault}" for fault in answer["wrong"]]
    if wrong:
        wrong.append("deploy again: what is wrong is fetched anew, and the rest is kept")
    return wrong
