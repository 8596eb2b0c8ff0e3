"""Planted facts provoke every diagnosis, and a healthy host has no diagnosis."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.service.diagnose import CHECKS, diagnose, diagnose_all, render
from sparkwright.checks.service.facts import Facts, services
from sparkwright.checks.service.log_lines import patterns
from sparkwright.engines import metric_names
from sparkwright.findings.finding import Severity
from sparkwright.host.lib import metrics
from sparkwright.text.sizes import GIB
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT
from tests.unit.checks.service.builders import (
    COMMAND,
    NOW,
    captured,
    container,
    disk,
    gpu,
    look,
    service,
    spark,
)  # fmt: skip

cases = Tables(__file__)

#: Checks that match a line of the log. Each check names a capture with such a line.
PATTERNS = patterns()
XID = (
    "NVRM: Xid (PCI:0000:01:00): 31, pid=13332, name=VLLM::EngineCor, Ch 00000010, intr 00000000. "
    "MMU Fault: ENGINE GRAPHICS faulted @ 0x7f29_5b8c9000. Fault is of type FAULT_PDE"
)
#: Lines captured on a Spark (dgx-spark-playbooks#97).
NO_MEMORY = (
    "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) "
    "returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359"
)


def _running(**changes: Any) -> Facts:
    return spark(service=service(container=container(**changes)))


def _looks(first: dict[str, float], second: dict[str, float], **changes: Any) -> Facts:
    return spark(service=service(metrics=[look(NOW - 30, **first), look(**second)], **changes))


SPARK_MEMORY = {"MemTotal": 120 * GIB, "MemAvailable": 18 * GIB}
_STILL = {"running": 3.0}
_STUCK = {"busy_percent": 96, "power_w": 22, "clock_mhz": 2400}

#: Diagnosis -> changes of a faultless host.
ILL: dict[str, dict[str, Any]] = safe_load(Path(__file__).with_name("illnesses.yaml").read_text())


def _ill(name: str) -> Facts:
    """A Spark with a fault; times are relative to now."""
    if name == "stuck-collective":
        return _rank(1, gpu=_STUCK)
    changes = deepcopy(ILL[name])
    own = changes.get("service", {})
    if own.get("container"):
        own["container"] = container(**own["container"])
    if "metrics" in own:
        own["metrics"] = [look(NOW + item.pop("at"), **item) for item in own["metrics"]]
    watch = changes.get("watch", {"findings": []})
    for timed in (watch, *watch["findings"], changes.get("maintenance", {})):
        for key in {"at", "since"} & set(timed):
            timed[key] += NOW
    if "service" in changes:
        changes["service"] = service(**own)
    if "others" in changes:
        changes["others"] = [container(**change) for change in changes["others"]]
    if "gpu" in changes:
        changes["gpu"] = gpu(**changes["gpu"])
    if "smi" in changes:
        changes["gpu"] = changes.pop("smi")
    return spark(**changes)


def _rank(number: int, **changes: Any) -> Facts:
    """One host of a cluster that serves well."""
    cluster = ["--nnodes", "2", "--node-rank", str(number), "--master-addr", "192.168.177.11"]
    texts = ["INFO vLLM is using nccl==2.28.9", *changes.pop("log", [])]
    own = container(command=[*COMMAND, *cluster], **changes.pop("container", {}))
    follower: dict[str, Any] = {"metrics": []} if number else {}
    parts = {"log": texts, "container": own, **follower, **changes.pop("service", {})}
    own_gpu = {"driver": "580.95.05", "compute_cap": "12.1", **changes.pop("gpu", {})}
    return spark(service=service(**parts), gpu=gpu(**own_gpu), **changes)


#: Values that must be equal on all ranks, and the message about a difference.
APART: dict[str, list[tuple[Facts, str]]] = {
    "ranks-differ": [
        (_rank(1, container={"image": "example:2"}), "image: spark-1 "),
        (
            _rank(1, container={"mounts": [{"source": "/opt/models/n", "target": "/model"}]}),
            "weights: spark-1 /model from /opt/models/m, spark-2 /model from /opt/models/n",
        ),
        (_rank(1, gpu={"driver": "590.44.01"}), "driver: spark-1 580.95.05, spark-2 590.44.01"),
        (_rank(1, log=["vLLM is using nccl==2.27.5"]), "NCCL: spark-1 2.28.9, spark-2 2.27.5"),
    ],
    "ranks-memory": [
        (
            _rank(1, memory={"MemTotal": 120 * GIB, "MemAvailable": 6 * GIB}),
            "available: spark-1 18.0 GiB, spark-2 6.0 GiB",
        )
    ],
}


@pytest.mark.parametrize(
    ("name", "other", "message"), [(name, *item) for name, ones in APART.items() for item in ones]
)
def test_ranks_that_differ_are_named_on_each_host(name: str, other: Facts, message: str) -> None:
    result = diagnose_all({"spark-1": _rank(0), "spark-2": other})
    assert {host: [item.id for item in ones] for host, ones in result.items()} == {
        "spark-1": [name], "spark-2": [name],
    }  # fmt: skip
    assert result["spark-1"][0].observed.startswith(message)


def test_equal_ranks_and_single_services_have_no_finding() -> None:
    alone = spark(service=service(container=container(image="example:2")))
    # Only the head gets requests, through its engine's socket.
    directory = "/run/sparkwright-engines/qwen36"
    socket = {
        "mounts": [
            {"source": "/opt/models/m", "target": "/model"},
            {"source": directory, "target": directory},
        ]
    }
    head = _rank(0, container=socket)
    result = diagnose_all({"spark-1": head, "spark-2": _rank(1), "spark-3": alone})
    assert result == {"spark-1": [], "spark-2": [], "spark-3": []}


def test_a_stuck_collective_is_found_by_the_gpu_of_each_rank() -> None:
    hangs = {"metrics": [look(NOW - 5, **_STILL), look(**_STILL)]}
    head = diagnose("spark-1", _rank(0, gpu=_STUCK, service=hangs))
    assert {item.id for item in head} == {"stuck-collective", "wedge"}
    assert [item.id for item in diagnose("spark-2", _rank(1, gpu=_STUCK))] == ["stuck-collective"]
    # A rank that computes, a rank that answers, a rank in its low-power state, and a host without a
    # rank.
    assert diagnose("spark-2", _rank(1, gpu={**_STUCK, "power_w": 71})) == []
    assert diagnose("spark-1", _rank(0, gpu=_STUCK)) == []
    slow = diagnose("spark-2", _rank(1, gpu={**_STUCK, "clock_mhz": 513}))
    assert [item.id for item in slow] == ["gb10-low-power"]
    assert diagnose("spark-1", spark(gpu=gpu(**_STUCK))) == []


def test_a_healthy_host_has_no_finding() -> None:
    assert diagnose("spark-1", spark()) == []
    assert render({"spark-1": []}) == "spark-1: nothing found"
    healed = {**SPARK_MEMORY, "CmaTotal": 0, "CmaFree": 0}  # the kernel runs with kho=off
    assert diagnose("spark-1", spark(memory=healed)) == []


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0"])
def test_a_busy_host_is_healthy(version: str) -> None:
    """Long prompts, sampling and a full batch are not faults. A real server gave the names."""
    real = captured(version)
    assert {"generated", "cache_used"} <= set(real)
    busy = {
        "running": 16.0, "cache_used": 0.9,
        "steps": 30_001.0,
    }  # fmt: skip
    assert diagnose("spark-1", _looks({"running": 16.0}, busy)) == []


def test_smoke_tests_and_health_checks_do_not_count_as_clients_answers() -> None:
    """Each answer was cut on a fleet without clients: health checks request one token."""
    text = (
        'vllm:request_success_total{finished_reason="length"} 900.0\n'
        'vllm:request_params_max_tokens_bucket{le="50.0"} 900.0\n'
    )
    figures = metrics.totals(text, metric_names())
    assert diagnose("spark-1", _looks(figures, figures)) == []


@cases("name", "cure")
def test_a_finding_names_the_remedy_that_users_reported(name: str, cure: str) -> None:
    (finding,) = diagnose("spark-1", _ill(name))
    assert cure in f"{finding.reason} {finding.remedy}"


def test_a_new_cdi_file_is_the_remedy_for_a_missing_file() -> None:
    log = _capture("cdi-without-vendor")
    (finding,) = diagnose("spark-1", spark(service=service(log=log)))
    assert "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml" in finding.remedy
    assert "enable --now nvidia-cdi-refresh.service" in finding.remedy


def _capture(name: str) -> list[str]:
    return (ROOT / "tests/fixtures" / PATTERNS[name].seen).read_text().splitlines()


def test_every_check_has_a_test() -> None:
    assert {*CHECKS.texts} == {*PATTERNS, *ILL, *APART, "stuck-collective"}


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_a_capture_of_a_log_has_its_own_diagnosis(name: str) -> None:
    ends = {"health": {"code": 500, "message": ""}} if PATTERNS[name].vague else {}
    first, *others = diagnose("spark-1", spark(service=service(log=_capture(name), **ends)))
    assert (first.id, others) == (name, [])
    assert first.subject.service == "qwen36"
    lines = (" ".join(line.split()) for line in _capture(name))
    assert any(" ".join(first.observed.split()) in line for line in lines)


def test_a_smaller_budget_alone_has_no_finding() -> None:
    """The output of vLLM 0.32.0 at every start with enough room: captured from the real engine."""
    line = "WARNING max_num_scheduled_tokens is set to 2004 based on the speculative decoding"
    assert diagnose("spark-1", spark(service=service(log=[line]))) == []


@pytest.mark.parametrize("client", ["127.0.0.1:5000", "    "], ids=["port", "Unix socket"])
@pytest.mark.parametrize("name", ["key-refused", "prompt-too-long"])
def test_log_lines_of_local_requests_have_no_finding(name: str, client: str) -> None:
    line = _capture(name)[0].replace("10.0.0.3:5000", client)
    assert line != _capture(name)[0]
    assert diagnose("spark-1", spark(service=service(log=[line]))) == []


@pytest.mark.parametrize("name", sorted({*ILL, "stuck-collective"}))
def test_a_fault_causes_only_its_finding(name: str) -> None:
    result = diagnose("spark-1", _ill(name))
    assert [item.id for item in result] == [name]
    (entry,) = result
    assert entry.observed
    assert entry.reason
    assert entry.remedy
    assert entry.source  # tests/unit/findings/test_sources.py checks the form of sources
    assert "UNIT" not in entry.remedy


def test_a_compiler_killed_by_the_kernel_has_its_own_diagnosis() -> None:
    line = "Out of memory: Killed process 4711 (cicc) total-vm:8123456kB"
    (finding,) = diagnose("spark-1", spark(kernel=[line]))
    assert (finding.id, "MAX_JOBS" in finding.remedy) == ("oom-killer", True)


def test_a_specific_diagnosis_replaces_a_vague_diagnosis() -> None:
    """systemd gave up on the service because of the token budget: only the reason is reported."""
    text = service(
        unit={"ActiveState": "failed", "Result": "exit-code", "NRestarts": "3"},
        log=[_capture("token-budget")[0], "RuntimeError: Engine core initialization failed."],
        container=None, gpu_inside=None, health={"code": None, "message": "refused"}, metrics=[],
    )  # fmt: skip
    assert [item.id for item in diagnose("spark-1", spark(service=text))] == ["token-budget"]


def test_the_cause_of_a_collapse_depends_on_the_tag() -> None:
    looks = [look(NOW - 5), look(drafted=303_000.0)]
    new = diagnose("spark-1", spark(service=service(metrics=looks)))
    old = diagnose("spark-1", spark(service=service(metrics=looks), planned={"corrupts": True}))
    assert "does not fit the body" in new[0].reason
    assert "corrupted the drafter's KV cache" in old[0].reason


def test_a_real_server_without_accepted_drafts_is_reported() -> None:
    """In the capture, a drafter of random weights drafted 2412 tokens, and 0 were accepted."""
    real = captured("0.32.0")
    assert real["drafted"] == 2412
    looks = [{"at": NOW - 5, "values": real}, {"at": NOW, "values": real}]
    result = diagnose("spark-1", spark(service=service(metrics=looks)))
    assert "acceptance-collapse" in [item.id for item in result]
    assert result[0].observed == "0.0% of 2412 drafted tokens accepted"


def test_each_xid_has_its_own_remedy() -> None:
    bus = "NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus."
    after = "NVRM: Xid (PCI:0000:2b:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008"
    (item,) = diagnose("spark-1", spark(kernel=[bus, after]))
    assert item.reason.startswith("Xid 79: the GPU has fallen off the bus")
    assert "reboot" in item.remedy


def test_a_fault_seen_by_doctor_and_watch_is_reported_once() -> None:
    finding = {
        "name": "wedge", "service": "qwen36", "severity": "error",
        "seen": "3 requests, no token for 9 min", "since": NOW - 540,
    }  # fmt: skip
    watch = {"at": NOW - 30, "findings": [finding]}
    both = service(metrics=[look(NOW - 30, **_STILL), look(**_STILL)])
    assert [item.id for item in diagnose("spark-1", spark(service=both, watch=watch))] == ["wedge"]
    (alone,) = diagnose("spark-1", spark(watch=watch))
    assert "no token for 9 min (watched for 9 min)" in alone.observed


def test_the_doctor_reports_preflights_findings() -> None:
    finding = {
        "id": "clock", "severity": "warning", "subject": {"host": "spark-1"},
        "observed": "the clock is not synchronised", "expected": "a synchronised clock",
        "reason": "it will drift", "remedy": "timedatectl", "source": "sparkwright",
    }  # fmt: skip
    (item,) = diagnose("spark-1", spark(findings=[finding, {**finding, "id": "docker-user"}]))
    assert (item.id, item.source, item.severity) == ("clock", "sparkwright", Severity.WARNING)
    assert (item.subject.host, item.expected) == ("spark-1", "a synchronised clock")


def test_errors_come_first_and_are_counted() -> None:
    ill = spark(disks={"/": disk(0, GIB)}, ports={"enp1s0f0np0": 1000})
    result = diagnose("spark-1", ill)
    assert [item.severity for item in result] == [Severity.ERROR, Severity.WARNING]
    text = render({"spark-1": result})
    assert text.startswith(
        "spark-1: disk-full: /: 0 of 1 GiB free; and 1 finding more\n\n"
        "spark-1: 1 error, 1 warning\n  error: disk-full\n"
    )


def test_arguments_are_read_from_every_form_of_command() -> None:
    shell = ["bash", "-lc", "exec vllm serve /model --max-num-seqs=32 --speculative-config '{}'"]
    for arguments in (COMMAND, shell, ["vllm", "serve", "--max-num-seqs", "x"]):
        ((_, service),) = services(_running(command=arguments))
        assert "max_num_seqs" in service.arguments
    ((_, service),) = services(_running(command=shell))
    assert service.limits.sequences == 32
    assert service.arguments["speculative_config"] == "{}"
    for arguments in (["--max-num-seqs", "x"], ["--speculative-config", "[" * 100_000]):
        ((_, service),) = services(_running(command=arguments))
        assert service.limits.sequences is None


@pytest.mark.parametrize(
    ("lines", "last", "reason"),
    [
        ([XID, NO_MEMORY, "nvme0: I/O error"], NO_MEMORY, "the driver could not allocate memory"),
        (["nvme0: I/O error", XID], XID, "the driver had reported a fault"),
        (["CPU3: Package temperature above threshold"], "CPU3: Pack", "the host lost power"),
    ],
)
def test_the_end_of_the_previous_boot_is_explained(
    lines: list[str], last: str, reason: str
) -> None:
    (result,) = diagnose("spark-1", spark(boot_before=lines))
    assert (result.id, result.severity) == ("unclean-end", Severity.WARNING)
    assert f"without a shutdown, after: {last}" in result.observed
    assert result.reason.startswith(reason)


def test_swap_and_a_desktop_have_no_finding_beside_a_card() -> None:
    card = gpu(name="NVIDIA GeForce RTX 5090")
    memory = {"MemTotal": 64 * GIB, "MemAvailable": 18 * GIB, "SwapTotal": 15 * GIB}
    assert diagnose("rtx-1", spark(gpu=card, memory=memory, swappiness=60, desktop=True)) == []
    assert diagnose("spark-1", spark(memory=memory, swappiness=10)) == []
