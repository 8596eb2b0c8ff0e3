"""Asks the services of this host for real answers. Runs on the host as root (roles/remote.py).

Root, because the API key lies in a 0600 file: it is read here and never leaves the host.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

QUESTION = "What is 17 + 25? Answer with the number only."
#: Long enough, and easy enough to foresee, that a drafter which works is believed.
FORESEEABLE = "Write the numbers from 1 to 30, separated by spaces."
#: vLLM's counters, from /metrics.
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"


#: What a log line has before the error's own name.
_FROM_ERROR = re.compile(r"^.*?(?=[\w.]*Error\b:)")


class Failure(Exception):
    """A check did not hold; the text says what was seen."""


class Service:
    """One service on this host, and how to talk to it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.unit: str = request["unit"]
        text = Path(request["secrets"]).read_text()
        self.key = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)[
            "VLLM_API_KEY"
        ]

    def call(
        self, method: str, path: str, body: Any = None, *, key: bool = True, timeout: float = 30
    ) -> tuple[int, bytes]:
        """One request; status and body."""
        connection = http.client.HTTPConnection(
            self.request["address"], self.request["port"], timeout=timeout
        )
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            connection.request(
                method, path, body=json.dumps(body) if body is not None else None, headers=headers
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def health(service: Service) -> str:
    """Wait for /health, as long as a first boot may take, or until systemd has given up."""
    deadline = time.monotonic() + service.request["boot_seconds"]
    looked = 0.0
    while True:
        try:
            status, _ = service.call("GET", "/health", timeout=5)
            if status == 200:
                return "200"
            seen = f"HTTP {status}"
        except (OSError, http.client.HTTPException) as error:
            seen = str(error) or type(error).__name__
        now = time.monotonic()
        if now > deadline:
            raise Failure(f"not healthy after {service.request['boot_seconds']} s: {seen}")
        if now - looked > 1:
            looked = now
            state, sub = unit_state(service.unit)
            if state in ("failed", "inactive"):
                words = telling(service.unit)
                raise Failure(f"the unit is {state}: it ended and was given up{words}")
            if sub == "auto-restart" and service.request.get("hasty"):
                raise Failure(f"it ended while it was starting{telling(service.unit)}")
        time.sleep(0.3)


def unit_state(unit: str) -> tuple[str, str]:
    """systemd's ActiveState and SubState."""
    shown = subprocess.run(
        ["systemctl", "show", "-p", "ActiveState,SubState", unit],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return found.get("ActiveState", ""), found.get("SubState", "")


def telling(unit: str) -> str:
    """``: `` and the last line of the unit's journal that names an error; nothing without one."""
    said = subprocess.run(
        ["journalctl", "-u", unit, "-n", "200", "-o", "cat", "--no-pager"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    lines = [line.strip() for line in said.splitlines() if "Error" in line]
    # vLLM's API server ends with one that only points to the engine's.
    lines = [line for line in lines if "Engine core initialization failed" not in line] or lines
    if not lines:
        return ""
    return ": " + textwrap.shorten(_FROM_ERROR.sub("", lines[-1]), 240, placeholder=" …")


def models(service: Service) -> str:
    """Every served name is in the model list."""
    status, body = service.call("GET", "/v1/models")
    if status != 200:
        raise Failure(f"/v1/models answers HTTP {status}")
    listed = {model["id"] for model in json.loads(body)["data"]}
    missing = [name for name in service.request["served_names"] if name not in listed]
    if missing:
        raise Failure(f"not served: {', '.join(missing)}; served: {', '.join(sorted(listed))}")
    return ", ".join(service.request["served_names"])


def key_required(service: Service) -> str:
    """Without the key there is no answer."""
    status, _ = service.call("GET", "/v1/models", key=False)
    if status != 401:
        raise Failure(f"/v1/models answers HTTP {status} without the key: it must be 401")
    return "401 without it"


def generate(service: Service, question: str = QUESTION, tokens: int = 0) -> str:
    """A real generation: only that proves life, since a wedged engine keeps answering /health."""
    body = {
        "model": service.request["served_names"][0],
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max(tokens, service.request["max_tokens"]),
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": service.request["thinking"]},
    }
    try:
        status, raw = service.call(
            "POST", "/v1/chat/completions", body, timeout=service.request["first_answer_seconds"]
        )
    except TimeoutError:
        raise Failure(
            f"no answer within {service.request['first_answer_seconds']} s while /health answers: "
            "the engine is wedged"
        ) from None
    if status != 200:
        raise Failure(f"HTTP {status}: {raw[:300].decode(errors='replace')}")
    answer = json.loads(raw)
    choice = answer["choices"][0]
    message = choice["message"]
    text = (
        message.get("content") or message.get("reasoning") or message.get("reasoning_content") or ""
    )
    if not answer["usage"]["completion_tokens"] or not text:
        raise Failure(f"an empty answer (finish_reason {choice['finish_reason']})")
    if not text.strip("! \n"):
        raise Failure("the answer is nothing but '!': the weights or their names are wrong")
    return str(text)[:60]


def warm_up(service: Service) -> str:
    """A longer answer: the first ones compile kernels."""
    return generate(service, FORESEEABLE, 64)


def speculation(service: Service) -> str:
    """Tokens are drafted, and some of them are right: else the drafter only costs."""
    before = counters(service)
    generate(service, FORESEEABLE, 64)
    after = counters(service)
    drafted, accepted = (after[name] - before[name] for name in (DRAFTED, ACCEPTED))
    if not drafted:
        raise Failure("no token was drafted: the drafter is not used")
    if not accepted:
        raise Failure(f"none of {drafted:.0f} drafted tokens was accepted: drafter and body differ")
    return f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted"


def counters(service: Service) -> dict[str, float]:
    """The counters of speculation, over all engines; 0 where there is none yet."""
    status, body = service.call("GET", "/metrics")
    if status != 200:
        raise Failure(f"/metrics answers HTTP {status}")
    found = {DRAFTED: 0.0, ACCEPTED: 0.0}
    for line in body.decode(errors="replace").splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in found:
            found[name] += float(line.rpartition(" ")[2])
    return found


def door(service: Service) -> str:
    """The way that clients come: open with the key, closed without."""
    said = through_the_door(service.request)
    if said:
        raise Failure(said)
    return "open with the key, closed without"


def through_the_door(request: dict[str, Any]) -> str | None:
    """What is wrong at the door of a service; None when it is well. It may take some seconds until
    the door has seen that the service is back."""
    address, port = request["door"]
    service = Service({**request, "address": address, "port": port})
    deadline = time.monotonic() + 20
    while True:
        try:
            seen = [service.call("GET", "/v1/models", key=key)[0] for key in (True, False)]
            said = f"HTTP {seen[0]} with the key, {seen[1]} without it, and it must be 200 and 401"
            if seen == [200, 401]:
                return None
        except (OSError, http.client.HTTPException) as error:
            said = f"port {port} does not answer: {error or type(error).__name__}"
        if time.monotonic() > deadline:
            return said
        time.sleep(0.5)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """All checks of one service; the first failure ends them, since the rest would fail with it."""
    checks: list[dict[str, Any]] = []
    plan = [("health", health), ("models", models), ("key", key_required), ("generation", generate)]
    plan += [(f"warm-up {number + 1}", warm_up) for number in range(request["warm_ups"])]
    if request.get("speculates"):
        plan.append(("speculation", speculation))
    if request.get("door"):
        plan.append(("door", door))
    journal: list[str] = []
    for name, check in plan:
        started = time.monotonic()
        try:
            detail, ok = check(Service(request)), True
        except Failure as failure:
            detail, ok = str(failure), False
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            detail, ok = f"{type(error).__name__}: {error}", False
        checks.append(
            {"name": name, "ok": ok, "seconds": time.monotonic() - started, "detail": detail}
        )
        if not ok:
            lines = subprocess.run(
                ["journalctl", "-u", request["unit"], "-n", "15", "-o", "cat", "--no-pager"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            journal = lines.stdout.splitlines()
            break
    return {"checks": checks, "journal": journal}


def main(request: dict[str, Any]) -> dict[str, Any]:
    """``{"services": [...]}`` (sparkwright/smoke.py) -> by name, checks and journal."""
    services = request["services"]
    if len(services) < 2:
        return {service["name"]: run(service) for service in services}
    from concurrent.futures import ThreadPoolExecutor  # not needed, so not loaded, for one

    with ThreadPoolExecutor(max_workers=len(services)) as pool:
        return dict(
            zip((service["name"] for service in services), pool.map(run, services), strict=True)
        )
