"""Everything that a service has to be able to do, asked for. Runs on the host as root.

Root, because the API key lies in a 0600 file: it is read here and never leaves the host
(roles/remote.py sends this program). What a service has to be able to do is decided on the
controller (sparkwright/smoke/deep.py) and comes with the request; what a failure means stands in
sparkwright/smoke/checks.yaml.
"""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sparkwright.host.smoke import answering, check, lengths, load, seeing, shaping, thinking
from sparkwright.host.smoke.talk import Fault, Skip, Talk


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        ask: says in a line what was seen; raises Fault, or Skip.
        seconds: beyond the deadline of one answer; what the request makes of it.
    """

    name: str
    ask: Callable[[Talk], str]
    seconds: Callable[[dict[str, Any]], float] = lambda _: 0.0


#: In this order: what everything else needs comes first, what may kill the engine last. A prompt
#: is taken to be read at 200 tokens a second, and tokens to be written at 10, all sequences
#: together: slower than any system of the catalog.
CHECKS = (
    Check("aliases", answering.names, lambda request: 10.0 * len(request["served_names"])),
    Check("key", answering.key),
    Check("chat", answering.chat),
    Check("completion", answering.completion),
    Check("stream", answering.stream),
    Check("thinking-off", thinking.without),
    Check("thinking-on", thinking.with_thoughts, lambda request: request["thinking_tokens"] / 2),
    Check("tools", shaping.tools, lambda _: 50.0),
    Check("json-schema", shaping.json_schema, lambda _: 25.0),
    Check("image", seeing.image),
    Check("long-2k", lengths.after_2k, lambda _: 10.0),
    Check("long-16k", lengths.after_16k, lambda _: 82.0),
    Check("context-limit", lengths.limit),
    Check("prefix-cache", load.prefix_cache, lambda _: 120.0),
    Check("speculation", load.speculation),
    Check("concurrency", load.concurrency, lambda request: 12.8 * (request["max_num_seqs"] or 0)),
)

#: Where these are late, the engine is wedged: nothing longer will come, and nobody waits for it.
_SMALLEST = ("aliases", "chat")
_WEDGED_SECONDS = 10.0


def run(request: dict[str, Any]) -> dict[str, Any]:
    """All checks of one service. None stops the others, but for health: without it, nobody asks."""
    home = Path(request["secrets"]).parent
    current = home / "current"
    found = [_one("health", partial(_health, request))]
    if found[0]["verdict"] == "passed":
        for one in CHECKS:
            why = request["skip"].get(one.name)
            if why:
                found.append(_result(one.name, "skipped", 0.0, why))
                continue
            seconds = request["first_answer_seconds"] + one.seconds(request)
            if any(seen["name"] in _SMALLEST and seen["cause"] == "late" for seen in found):
                seconds = min(seconds, _WEDGED_SECONDS)
            found.append(_one(one.name, partial(_asked, one, request, seconds)))
    failed = any(one["verdict"] == "failed" for one in found)
    return {
        "release": current.resolve().name if current.is_symlink() else None,
        "checks": found,
        "journal": _journal(request["unit"]) if failed else [],
    }


def _asked(one: Check, request: dict[str, Any], seconds: float) -> str:
    return one.ask(Talk(request, seconds))


def _health(request: dict[str, Any]) -> str:
    if not Path(request["secrets"]).exists():
        raise Fault("absent", f"there is no {request['secrets']}: the service is not deployed here")
    try:
        return check.health(check.Service(request))
    except check.Failure as failure:
        raise Fault("down", str(failure)) from None


def _one(name: str, ask: Callable[[], str]) -> dict[str, Any]:
    """A check's result, whatever it runs into."""
    begun = time.monotonic()
    verdict, cause = "failed", None
    try:
        detail = ask()
        verdict = "passed"
    except Skip as skip:
        verdict, detail = "skipped", str(skip)
    except Fault as fault:
        detail, cause = str(fault), fault.cause
    except (OSError, http.client.HTTPException) as error:
        detail, cause = f"{type(error).__name__}: {error}", "cut"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        detail, cause = f"an answer in a shape that is not vLLM's: {error!r}", "shape"
    return _result(name, verdict, time.monotonic() - begun, detail, cause)


def _result(
    name: str, verdict: str, seconds: float, detail: str, cause: str | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": verdict,
        "seconds": round(seconds, 3),
        "detail": detail,
        "cause": cause,
    }


def _journal(unit: str) -> list[str]:
    """The service's last lines, for whoever looks for the reason."""
    lines = subprocess.run(
        ["journalctl", "-u", unit, "-n", "15", "-o", "cat", "--no-pager"],
        capture_output=True,
        text=True,
        check=False,
    )
    return lines.stdout.splitlines()


def main(request: dict[str, Any]) -> dict[str, Any]:
    """``{"services": [...]}`` (sparkwright/smoke/deep.py) -> by name: release, checks, journal.

    One service after the other: they share one GPU, and each is to be asked for all it can take.
    """
    return {service["name"]: run(service) for service in request["services"]}
