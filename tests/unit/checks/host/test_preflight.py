"""Every check of preflight finds its fault, passes a faultless host, and names a remedy."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.host.judge import judge
from sparkwright.checks.host.remedies import install, major
from sparkwright.findings.finding import Severity, errors
from sparkwright.host import observe
from sparkwright.host.lib import documents
from sparkwright.host.lib.gpu import IDENTITY, NAMES, Gpus, parse
from sparkwright.host.lib.records import encode
from sparkwright.host.observe import Distribution
from sparkwright.text.sizes import GIB
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT, RTX, SPARK, catalog, gpus, plan, probe, wanted

cases = Tables(__file__)

NOW = 1000.0
BOX = {"architecture": "x86_64", "memory": {"total": 64 * GIB, "available": 60 * GIB}}
ABSENT = {"installed": False, "code": None, "err": "", "out": ""}


#: Faults of a host, each with its check.
FAULTS = safe_load(Path(__file__).with_name("faults.yaml").read_text())


def findings(**changes: Any) -> dict[str, Any]:
    """Faults of a Spark with these changes, by check."""
    if "smi" in changes:
        changes["gpu"] = gpus(changes.pop("smi"))
    return {f.id: f for f in judge(wanted(plan()), probe(**changes), NOW)}


def test_a_fresh_spark_in_order_has_no_finding() -> None:
    assert findings() == {}


@pytest.mark.parametrize(("check", "changes", "message"), FAULTS["errors"])
def test_each_fault_is_reported_with_its_message_and_a_remedy(
    check: str, changes: dict[str, Any], message: str
) -> None:
    result = findings(**changes)[check]
    assert result.severity is Severity.ERROR
    assert message in result.observed
    assert result.remedy
    assert result.reason


def test_a_host_with_another_gpu_is_refused_with_recipes_for_its_gpu() -> None:
    refused = findings(smi="NVIDIA H200, 9.0, 580.159.04, 143771 MiB", architecture="x86_64")["gpu"]
    own = {name for name, item in catalog().recipes.items() if "9.0" in item.needs.compute_caps}
    assert own == set(refused.remedy.split(": ")[1].split("; ")[0].split(", "))
    unserved = findings(smi="NVIDIA L40S, 8.9, 580.1, 46068 MiB")["gpu"]
    assert "take a recipe for this GPU" in unserved.remedy


@pytest.mark.parametrize("changes", FAULTS["sound"])
def test_a_faultless_host_of_another_kind_has_no_finding(changes: dict[str, Any]) -> None:
    assert findings(**changes) == {}


@pytest.mark.parametrize(("check", "changes"), FAULTS["warnings"])
def test_a_harmless_fault_is_a_warning(check: str, changes: dict[str, Any]) -> None:
    result = findings(**changes)
    assert result[check].severity is Severity.WARNING
    assert errors(result.values()) == []


def test_all_faults_are_reported_at_once_errors_first() -> None:
    result = judge(
        wanted(plan()),
        probe(gpu=ABSENT, toolkit=ABSENT, sudo="no", docker_socket=False, python=[3, 8]),
        NOW,
    )
    assert {f.id for f in result} >= {"nvidia-driver", "nvidia-container-toolkit", "sudo", "python"}
    severities = [f.severity for f in result]
    assert severities == sorted(severities, key=lambda s: s is Severity.WARNING)


def test_only_missing_bytes_count_as_disk_need() -> None:
    want = wanted(plan())
    small = {"device": 1, "free": 40 * GIB, "exists": True, "read_only": False}
    disks = {"disks": {"/opt/models": small, "/opt/sparkwright": small}, "docker_disk": small}
    assert "disk" in {f.id for f in judge(want, probe(**disks), NOW)}
    everything = {
        "models": dict.fromkeys(model.directory for model in want.models),
        "images": {service.image: True for service in want.services},
    }
    assert "disk" not in {f.id for f in judge(want, probe(**disks, **everything), NOW)}


def test_weights_and_image_on_two_file_systems_are_counted_separately() -> None:
    want = wanted(plan())
    models = {"device": 1, "free": 70 * GIB, "exists": True, "read_only": False}
    docker = {"device": 2, "free": 62 * GIB, "exists": True, "read_only": False}
    apart = probe(disks={"/opt/models": models, "/opt/sparkwright": docker}, docker_disk=docker)
    assert [f.id for f in judge(want, apart, NOW)] == []
    together = {**models, "device": 2}
    shared = probe(disks={"/opt/models": together, "/opt/sparkwright": docker}, docker_disk=docker)
    assert [f.id for f in judge(want, shared, NOW)] == ["disk"]


def test_bytes_of_an_interrupted_download_need_no_further_disk_space() -> None:
    want = wanted(plan())
    disk = {"device": 1, "free": 70 * GIB, "exists": True, "read_only": False}
    other = {**disk, "device": 2}
    places = {"/opt/models": disk, "/opt/sparkwright": other}
    directory = want.models[0].directory
    little = {**places, "/opt/models": {**disk, "free": 50 * GIB}}
    assert [f.id for f in judge(want, probe(disks=little, docker_disk=other), NOW)] == ["disk"]
    resumed = probe(disks=little, docker_disk=other, partial={directory: 20 * GIB})
    assert [f.id for f in judge(want, resumed, NOW)] == []


def test_a_new_kv_cache_needs_room_beside_the_kv_caches_of_kept_releases() -> None:
    offload = {"gib": 50, "disk": "/mnt/fast"}
    want = wanted(plan({"qwen36": {**SPARK["qwen36"], "kv_offload": offload}}))
    (path,) = (own.offload_directory for own in want.plan.services)
    disk = {"device": 3, "free": 20 * GIB, "exists": True, "read_only": False}
    large = {**disk, "device": 1, "free": 900 * GIB}
    disks = {"/opt/models": large, "/opt/sparkwright": large, path: disk}
    kept = probe(disks=disks, docker_disk=large, services={"qwen36": {"current": "0" * 12}})
    (finding,) = judge(want, kept, NOW)
    assert (finding.id, f"50.0 GiB for the KV cache under {path}" in (finding.expected or "")) == (
        "disk", True
    )  # fmt: skip
    there = {"current": "0" * 12, "compose": "0" * 64}
    assert judge(want, probe(disks=disks, docker_disk=large, services={"qwen36": there}), NOW) == []


def test_a_port_held_by_our_own_container_is_accepted() -> None:
    state, ours, docker = (FAULTS["port"][name] for name in ("state", "ours", "docker"))
    assert findings(ports={"8000": ours}, services={"qwen36": state}) == {}
    # Docker's own process listens for a container with its own network.
    strict = {**docker, "container": "sparkwright-qwen36 no"}
    assert findings(ports={"8000": strict}, services={"qwen36": state}) == {}
    for name in ("qwen36 no", "sparkwright-other no", "by-hand always"):
        taken = findings(ports={"8000": {**docker, "container": name}}, services={"qwen36": state})
        assert set(taken) == {"port"}
    pretends = {**strict, "command": "python3"}
    assert set(findings(ports={"8000": pretends}, services={"qwen36": state})) == {"port"}


def test_a_discrete_card_needs_the_memory_of_its_recipe() -> None:
    want = wanted(plan(RTX, "rtx-1"), architectures=("amd64",))
    card = gpus("NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607 MiB")
    assert judge(want, probe(**BOX, gpu=card), NOW) == []
    small = gpus("NVIDIA GeForce RTX 5080, 12.0, 580.95.05, 16303 MiB")
    assert [f.id for f in judge(want, probe(**BOX, gpu=small), NOW)] == ["gpu-memory"]


def test_a_spark_needs_no_check_of_dedicated_memory() -> None:
    """The stock Gemma recipe runs on both kinds of hosts, and a card must hold its 16.25 GB."""
    services = {"gemma": {"recipe": "gemma4-26b-a4b-stock"}}
    assert judge(wanted(plan(services), architectures=("arm64", "amd64")), probe(), NOW) == []
    want = wanted(plan(services, "rtx-1"), architectures=("arm64", "amd64"))
    small = gpus("NVIDIA GeForce RTX 5080, 12.0, 580.95.05, 16303 MiB")
    assert "gpu-memory" in [f.id for f in judge(want, probe(**BOX, gpu=small), NOW)]


#: noonghunna/club-3090#120; the second value is the need of the 5090's recipe here.
OLD, NEW = "GPU-11111111-1111-4111-8111-111111111111", "GPU-22222222-2222-4222-8222-222222222222"
MIXED = f"""NVIDIA GeForce RTX 3090, 8.6, 580.95.05, 24576 MiB, 0, {OLD}
NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607 MiB, 1, {NEW}
"""


def _mixed(names: list[Any] | None, text: str = MIXED, **changes: Any) -> list[Any]:
    service = {**RTX["qwen36"], **({"gpus": names} if names else {})}
    want = wanted(plan({"qwen36": service}, "rtx-1"), architectures=("amd64",))
    seen = encode(Gpus(True, 0, "", parse(text, (*IDENTITY, *NAMES))))
    return judge(want, probe(**BOX, gpu=seen, **changes), NOW)


def test_a_service_is_not_given_a_gpu_that_does_not_fit() -> None:
    (result,) = _mixed(None)
    assert (result.id, result.severity) == ("gpu-mixed", Severity.ERROR)
    assert f"{OLD} (NVIDIA GeForce RTX 3090) does not fit" in result.observed
    assert result.remedy == f'services.qwen36.gpus = ["{NEW}"]'


def test_a_service_that_runs_beside_an_unfit_gpu_gets_only_a_warning() -> None:
    container = {"id": "f", "running": True, "created": "2026-11-20T00:00:00Z", "image": "y"}
    running = {"qwen36": {"container": {**container, "release": "x"}}}
    (result,) = _mixed(None, services=running)
    assert (result.id, result.severity) == ("gpu-mixed", Severity.WARNING)


def test_a_gpu_with_too_little_memory_is_refused() -> None:
    small = MIXED.replace("RTX 3090, 8.6, 580.95.05, 24576", "RTX 5070 Ti, 12.0, 580.95.05, 16303")
    assert [item.id for item in _mixed(None, small)] == ["gpu-mixed"]
    assert _mixed(None, small.replace("16303", "32607")) == []


@pytest.mark.parametrize("names", [[NEW], [1]])
def test_only_the_services_own_gpus_are_judged(names: list[Any]) -> None:
    assert _mixed(names) == []


def test_an_unfit_or_missing_chosen_gpu_is_refused() -> None:
    assert [item.id for item in _mixed([0])] == ["gpu"]
    assert [item.id for item in _mixed([0, 1])] == ["gpu-mixed"]
    (missing,) = _mixed([NEW, 7])
    assert (missing.id, missing.observed) == ("gpu-unknown", "the host has no GPU 7")
    assert NEW in missing.expected


def _two(services: dict[str, Any]) -> dict[str, Any]:
    return {**services, "second": {**services["qwen36"], "port": 8001, "served_names": ["other"]}}


def test_two_services_on_two_cards_need_their_summed_host_memory() -> None:
    want = wanted(plan(_two(RTX), "rtx-1"), architectures=("amd64",))
    card = gpus("NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607 MiB")
    box = {"architecture": "x86_64", "gpu": card}
    little = {"total": 40 * GIB, "available": 39 * GIB}
    assert [f.id for f in judge(want, probe(**box, memory=little), NOW)] == ["memory"]
    enough = {"total": 64 * GIB, "available": 60 * GIB}
    assert judge(want, probe(**box, memory=enough), NOW) == []


def test_preflight_does_not_judge_services_that_share_a_spark() -> None:
    assert judge(wanted(plan(_two(SPARK))), probe(), NOW) == []


def test_the_share_of_a_spark_is_compared_with_available_memory() -> None:
    """0.85 of 121.69 GiB is 103.4, and kits have 101 to 102 free after boot (EXL3#47)."""
    greedy = {"qwen36": {**SPARK["qwen36"], "arguments": {"gpu_memory_utilization": 0.85}}}
    after_boot = {
        "total": 127601388 * 1024, "available": int(101.5 * GIB), "swap": 15 * GIB, "desktop": True,
    }  # fmt: skip
    (result,) = judge(wanted(plan(greedy)), probe(memory=after_boot), NOW)
    assert (result.id, result.severity) == ("memory-available", Severity.WARNING)
    assert result.observed == (
        "101.5 GiB of 121.7 GiB available, 15.0 GiB of swap, and a desktop runs"
    )
    assert result.expected.startswith("103.4 GiB: 0.85 (gpu_memory_utilization)")
    for cure in (
        "gpu_memory_utilization: 0.83",
        "isolate multi-user.target",
        "stop the program that holds the memory",
    ):
        assert cure in result.remedy
    assert judge(wanted(plan()), probe(memory=after_boot), NOW) == []  # the recipe's share is 0.70
    assert (
        judge(wanted(plan(greedy)), probe(memory={**after_boot, "available": 104 * GIB}), NOW) == []
    )


def test_llama_cpps_need_is_compared_with_available_memory() -> None:
    """Weights, context and engine take 20.9 GiB, and the cache of prompts in RAM takes 8 GiB."""
    want = wanted(plan({"s": {"recipe": "qwen35-27b-gguf-rtx-24gb"}}))
    memory = {"total": 121 * GIB, "available": 25 * GIB}
    results = {item.id: item for item in judge(want, probe(memory=memory), NOW)}
    assert results["memory-available"].expected == "28.9 GiB for weights, context and engine"


def test_a_host_without_services_needs_no_memory() -> None:
    empty = wanted(plan({}, address={"port": 8080}))
    assert judge(empty, probe(memory={"total": 0, "available": -1}), NOW) == []


HELD = "NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607 MiB, 0, GPU-0, {} MiB"


@cases("recipe", "used", "desktop", "holders", "texts")
def test_card_memory_held_by_another_program_is_reported(
    recipe: str, used: int, desktop: bool, holders: list[str], texts: list[str]
) -> None:
    """CUDA reports 31.4 of the 31.84 GiB in nvidia-smi's list, and a share of 0.95 takes 29.8."""
    services = {
        f"s{number}": {"recipe": name, "port": 8000 + number, "served_names": [f"m{number}"]}
        for number, name in enumerate(recipe.split())
    }
    want = wanted(plan(services, "rtx-1"), architectures=("amd64",))
    cards = parse(HELD.format(used), (*IDENTITY, *NAMES, "memory.used"))
    memory = {**BOX["memory"], "desktop": desktop}  # type: ignore[dict-item]
    seen = probe(
        **{**BOX, "memory": memory, "gpu_holders": holders}, gpu=encode(Gpus(True, 0, "", cards))
    )
    text = " ".join(
        f"{item.id} {item.observed} {item.expected} {item.remedy}"
        for item in judge(want, seen, NOW)
    )
    assert [word for word in texts if word not in text] == []
    assert bool(text) == bool(texts)


@pytest.mark.parametrize(("nominal", "total"), [(16, 15.5), (32, 31.0)])
def test_a_box_with_the_memory_on_its_label_is_accepted(nominal: int, total: float) -> None:
    """The kernel lists a little less memory than the label."""
    needs = {item.needs.memory_gib for item in catalog().recipes.values()}
    assert [need for need in needs if total < need <= nominal] == []


DGX, UBUNTU = Distribution("ubuntu", "24.04", dgx=True), Distribution("ubuntu", "24.04")
BOOKWORM, TRIXIE = Distribution("debian", "12"), Distribution("debian", "13")
FEDORA, RESOLUTE = Distribution("fedora", "43"), Distribution("ubuntu", "26.04")
OTHER = Distribution("arch", "")
#: Packages that only these distributions have.
OWN = {
    "docker-compose-v2": [UBUNTU, RESOLUTE],
    "nvidia-driver-580-open": [UBUNTU, RESOLUTE],
    "linux-modules-nvidia-580-open": [RESOLUTE],
    "moby-engine": [FEDORA],
    "akmod-nvidia": [FEDORA],
    "docker-cli": [TRIXIE],
    "docker.io": [UBUNTU, RESOLUTE, TRIXIE],
    "nvidia-open": [BOOKWORM, TRIXIE],
    "nv-docker-options": [DGX],
    "fwupdmgr": [DGX],
}


@pytest.mark.parametrize("on", [DGX, UBUNTU, RESOLUTE, FEDORA, BOOKWORM, TRIXIE, OTHER])
def test_no_remedy_names_a_missing_recipe(on: Distribution) -> None:
    text = " ".join(
        install(name, on)
        .replace("(where Docker is docker.io)", "")
        .replace("(where Docker is moby-engine)", "")
        for name in ("docker", "compose", "toolkit", "driver")
    )
    assert {name for name in OWN if name in text} == {
        name for name, where in OWN.items() if on in where
    }
    assert ("add NVIDIA's repository" in text) == (on is not DGX)
    assert "https://docs.docker.com/engine/install/" in text
    assert ("dnf" in text, "apt" in text) == (on is FEDORA, on is not FEDORA)


@cases("module", "check", "present", "absent")
def test_each_remedy_fixes_its_fault(module: str, check: str, present: str, absent: str) -> None:
    """Available memory counts the page cache already; CUDA's free memory on a GB10 does not."""
    texts = safe_load((ROOT / "sparkwright" / module).read_text())
    remedies = [texts[check], *texts[check].get("cases", {}).values()]
    text = " ".join(entry["remedy"] for entry in remedies)
    assert present in text
    assert absent not in text


def test_every_finding_has_the_remedy_of_its_host() -> None:
    bare = {"gpu": ABSENT, "toolkit": ABSENT, "docker_found": False}
    seen = probe(**bare, distribution={"id": "debian", "version": "12"})
    result = {item.id: item.remedy for item in judge(wanted(plan()), seen, 1000.0)}
    assert result["docker"] == install("docker", BOOKWORM)
    assert result["nvidia-driver"] == install("driver", BOOKWORM)
    assert result["nvidia-container-toolkit"] == install("toolkit", BOOKWORM)


@cases("text", "expected")
def test_the_runtime_of_a_host_is_checked(
    text: str | None, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "text", lambda _: text)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    seen = observe.distribution()
    assert [seen.id, seen.version, major(seen)] == expected
    assert not seen.dgx
