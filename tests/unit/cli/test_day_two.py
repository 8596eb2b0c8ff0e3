"""logs, start, stop, restart, shell and maintenance: their prompts, output and exit codes."""

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.host.control import ControlAnswer
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.logs import LogLine, LogsAnswer, LogsRequest
from tests.tables import Tables
from tests.unit.cli.answering import Asked, answering, exits, run, silent

cases = Tables(__file__)

SITE = "inventory/lab.py"
DONE = ControlAnswer(("qwen36",), {"qwen36": "stopped"})
WRONG = ControlAnswer(("qwen36",), faults=("qwen36: health: no answer",))
LINE = LogLine(1764000000.0, "qwen36", "INFO ready")
NOTHING = ControlAnswer(("gemma",))
LOGS = LogsAnswer(("qwen36",), (LINE,), "s=1")

Having = Callable[..., list[Asked]]


pytestmark = pytest.mark.usefixtures("checkout")


@pytest.fixture
def having(monkeypatch: pytest.MonkeyPatch) -> Having:
    """Give hosts these answers; return the requests to hosts."""
    return lambda result, missing=(): answering(monkeypatch, lambda _: silent(result, *missing))


def test_logs_hide_our_own_checks_and_report_an_empty_result(having: Having) -> None:
    asked = having({"spark-1": LogsAnswer(("qwen36",), cursor="s=1"), "rtx-1": LogsAnswer(())})
    done = run("logs", SITE)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == (
        "spark-1: the log has only access lines of checks (--probes shows them)\n"
        "rtx-1: no service was ever started here\n"
    )
    run("logs", SITE, "--probes")
    request = SimpleNamespace(name="spark-1", settings=SimpleNamespace(services_root="/x"))
    patterns = [each.arguments["request"](request).hidden for each in asked]
    assert patterns[1] == ""
    client = 'INFO:     %s - "%s HTTP/1.1" %s'
    for line, hidden in (
        (client % ("127.0.0.1:4242", "GET /health", "200 OK"), True),
        ("(APIServer pid=1) " + client % ("", "GET /metrics", "200 OK"), True),
        (client % ("172.18.0.1:80", "GET /v1/models", "401 Unauthorized"), True),
        (client % ("127.0.0.1:4242", "GET /health", "503 Service Unavailable"), False),
        (client % ("192.168.1.7:4242", "GET /v1/models", "200 OK"), False),
        (client % ("127.0.0.1:4242", "POST /v1/chat/completions", "200 OK"), False),
        ('prompt: INFO: "GET /health HTTP/1.1" 200', False),
    ):
        assert bool(re.search(patterns[0], line)) == hidden, line


@pytest.mark.parametrize("action", ["start", "stop", "restart"])
def test_each_command_prompts_and_uses_the_sites_inventory(having: Having, action: str) -> None:
    asked = having({"spark-1": DONE})
    refused = run(action, input="n\n")
    assert (refused.exit_code, asked) == (1, [])
    assert f"{action.capitalize()} every service on all hosts of {SITE}?" in refused.stderr
    assert run(action, input="y\n").exit_code == 0
    assert (str(asked[0].hosts.inventory), asked[0].hosts.services_of("spark-1")) == (SITE, None)


@pytest.mark.parametrize(
    ("expected", "silent"), [({}, ()), ({"spark-1": DONE}, ("rtx-1",)), ({"spark-1": WRONG}, ())]
)
def test_only_success_on_every_host_exits_with_0(
    having: Having, expected: dict[str, Any], silent: tuple[str, ...]
) -> None:
    having(expected, silent)
    done = exits(1, "restart", SITE, "--yes")
    if "spark-1" in expected and not silent:
        assert "spark-1: qwen36: health: no answer" in done.stderr


@pytest.mark.parametrize("arguments", [("stop", SITE, "--yes"), ("logs", SITE)])
def test_an_unknown_service_is_reported_with_the_nearest_name(
    having: Having, arguments: tuple[str, ...]
) -> None:
    first, other = (DONE, NOTHING) if arguments[0] == "stop" else (LOGS, LogsAnswer(("gemma",)))
    having({"spark-1": first, "rtx-1": other})
    # A second host without the service is not a fault.
    assert run(*arguments, "--service", "qwen36").exit_code == 0
    done = exits(2, *arguments, "--service", "qwen63")
    assert "no host has a service 'qwen63': did you mean 'qwen36'?" in done.stderr


def test_activate_looks_for_the_service_before_its_prompt(having: Having) -> None:
    asked = having({"spark-1": ActivateAnswer(service_names=("qwen36",))})
    done = run("activate", SITE, "--service", "nope")
    assert (done.exit_code, [each.arguments["dry"] for each in asked]) == (2, [True])
    assert "no host has a service 'nope'" in done.stderr
    assert "Activate" not in done.stderr
    assert run("activate", SITE, "qwen36", input="y\n").exit_code == 0
    assert [each.arguments["dry"] for each in asked[1:]] == [True, False]


@pytest.mark.parametrize("names", [("spark-1/qwen36", "spark-2"), ("rtx-1/qwen36", "sparks")])
def test_activate_refuses_whole_hosts_beside_a_service(
    names: tuple[str, str], having: Having
) -> None:
    asked = having({"spark-1": ActivateAnswer(service_names=("qwen36", "gemma"))})
    done = run("activate", SITE, *names, "--yes")
    assert (done.exit_code, asked) == (2, [])
    assert "name one SERVICE or HOST/SERVICE" in done.stderr


@pytest.mark.parametrize("word", ["destroy", "delete", "uninstall"])
def test_another_tools_command_for_removal_is_not_corrected_to_deploy(word: str) -> None:
    assert "did you mean 'remove'?" in run(word, SITE).stderr


def _lines_wanted(asked: Asked) -> Any:
    run = SimpleNamespace(name="spark-1", settings=SimpleNamespace(services_root="/srv"))
    return asked.arguments["request"](run)


def test_lines_of_all_hosts_are_in_order(having: Having) -> None:
    later = replace(LOGS, lines=(replace(LINE, at=1764000060.0, text="later"),))
    asked = having({"rtx-1": later, "spark-1": LOGS})
    done = run("logs", SITE, "-n", "5", "--since", "10m")
    first, second = done.stdout.splitlines()
    assert re.fullmatch(r"\w{3} \d\d \d\d:\d\d:\d\d spark-1 qwen36: INFO ready", first)
    assert second.endswith("rtx-1 qwen36: later")
    assert replace(_lines_wanted(asked[0]), hidden="") == LogsRequest(None, "/srv", 5, "-600s")
    assert asked[0].options == {"planless": True}


@cases("message", "asked")
def test_times_are_parsed(having: Having, message: str, asked: str) -> None:
    requests = having({"spark-1": LOGS})
    assert run("logs", SITE, "--since", message).exit_code == 0
    assert _lines_wanted(requests[0]).since == asked
    assert run("logs", SITE, "--since", "2026-01-31 14:00").exit_code == 0
    assert re.fullmatch(r"@1769\d{6}", str(_lines_wanted(requests[1]).since))


@pytest.mark.parametrize(
    "message", ["yesterday", "-1h; id", "10", "2026-02-30", "9" * 400 + "s", ""]
)
def test_invalid_times_are_refused(having: Having, message: str) -> None:
    asked = having({"spark-1": LOGS})
    done = run("logs", SITE, "--since", message)
    assert (done.exit_code, asked) == (2, [])
    assert "is not a time: write 30s, 10m" in done.stderr


@cases("arguments", "message")
def test_an_unknown_host_is_refused_for_maintenance(
    having: Having, arguments: tuple[str, ...], message: str
) -> None:
    asked = having({})
    done = run("maintenance", *arguments)
    assert (done.exit_code, asked) == (2, [])
    assert message in done.stderr
