"""The main job, end to end, in a user's order: a dry run, a deploy, a second deploy, a change."""

import json
import re
import subprocess

import pytest

from lab import machines
from tests.fleet.site import (
    GOOD,
    MACHINES,
    Site,
    container,
    fingerprint,
    inside,
    ssh,
    until,
)


@pytest.mark.timeout(900)
class TestFirstRuns:
    """These tests run first and in order: the fleet is bare only once."""

    def test_a_dry_run_on_bare_hosts_reports_everything_and_touches_nothing(
        self, site: Site
    ) -> None:
        before = {host: fingerprint(host) for host in MACHINES}
        run = site.run("--dry")
        assert run.code == 1, run.output  # hopper-1 is refused
        assert run.refused == {"hopper-1"}
        for host in GOOD:
            for name in (
                "would make /opt/models",
                "would fetch AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4@",
                "would fetch z-lab/Qwen3.6-35B-A3B-DFlash@",
                "would pull ghcr.io/aeon-7/aeon-vllm-ultimate:2026-08-17-v0.27.1-slim (sha256-",
                "would service qwen36: release",
            ):
                assert re.search(rf"\[{host}\] +{re.escape(name)}", run.output), (host, name)
        assert {host: fingerprint(host) for host in MACHINES} == before

    def test_after_the_first_run_bare_hosts_serve(self, site: Site) -> None:
        untouched = fingerprint("hopper-1")
        run = site.deploy(refused={"hopper-1"})
        assert run.changed == set(GOOD)
        assert "for this GPU: qwen36-35b-a3b-fp8-h200; or take the host out" in run.output
        assert "NOT as planned: hopper-1" in run.output
        assert fingerprint("hopper-1") == untouched
        for host in GOOD:
            (service,) = run.host(host)["services"]
            assert service["smoke"]["failures"] == []
            # checks: health, models, key, generation, speculation, through the proxy, from outside
            assert service["smoke"]["total"] == 7

    def test_the_printed_command_line_gets_an_answer(self, site: Site) -> None:
        run = site.deploy(refused={"hopper-1"})
        (line,) = [
            text.strip() for text in run.output.splitlines() if text.strip().startswith("curl")
        ]
        done = subprocess.run(
            line, shell=True, cwd="/", capture_output=True, text=True, check=False
        )
        answer = json.loads(done.stdout)
        message = answer["choices"][0]["message"]
        assert message["content"] or message["reasoning"], answer


def test_hosts_match_the_readme(converged: Site) -> None:
    """An independent check: Docker, systemd, files and HTTP, without sparkwright's own report."""
    for host in GOOD:
        image = ssh(host, "docker inspect -f '{{.Config.Image}}' sparkwright-qwen36")
        assert re.fullmatch(r"ghcr\.io/aeon-7/aeon-vllm-ultimate:sha256-[0-9a-f]{64}", image)
        policy = "{{.HostConfig.RestartPolicy.Name}} {{.HostConfig.NetworkMode}}"
        assert ssh(host, f"docker inspect -f '{policy}' sparkwright-qwen36") == "no none"
        assert ssh(host, "systemctl is-enabled sparkwright-qwen36") == "enabled"
        home = "/opt/sparkwright/services/qwen36"
        assert ssh(host, f"sudo stat -c '%a %U' {home}/secrets.env") == "600 root"
        models = f"http://{MACHINES[host].address}:8000/v1/models"
        listed = subprocess.run(
            ["curl", "-s", "-H", f"Authorization: Bearer {converged.key}", models],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        names = [model["id"] for model in json.loads(listed)["data"]]
        assert names == ["qwen36-35b-heretic", "qwen36-fast", "qwen36-deep"]
        code = subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", models],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert code == "401"


def test_weights_are_regular_files_with_the_hubs_content(converged: Site) -> None:
    for host in GOOD:
        assert ssh(host, "sudo find /opt/models -type l") == ""
        assert ssh(host, "sudo find /opt/models -name '*.part' -o -name '.staging*'") == ""
        receipts = ssh(host, "sudo find /opt/models -name .sparkwright-receipt.json").splitlines()
        assert len(receipts) == 2
        for receipt in receipts:
            data = json.loads(ssh(host, f"sudo cat {receipt}"))
            folder = receipt.rsplit("/", 1)[0]
            assert folder.endswith(data["commit"])
            sums = {path: entry["sha256"] for path, entry in data["files"].items()}
            lines = "\\n".join(f"{value}  {path}" for path, value in sums.items() if value)
            ssh(host, f"cd {folder} && printf '{lines}\\n' | sha256sum --check --quiet")


def test_the_second_run_makes_and_reports_no_change(converged: Site) -> None:
    before = {host: (container(host), fingerprint(host)) for host in GOOD}
    run = converged.deploy(refused={"hopper-1"})
    assert run.changed == set()
    lines = [line for line in run.output.splitlines() if re.match(r" +\[(spark|rtx)-\d\] ", line)]
    results = [line for line in lines if line.split("] ")[1].strip() in ("No changes", "Success")]
    assert results
    assert all(line.endswith("No changes") for line in results), run.output
    assert {host: (container(host), fingerprint(host)) for host in GOOD} == before
    for host in GOOD:
        assert run.host(host)["executions"] <= 12
    assert "remote executions: spark-1 2, spark-2 2, rtx-1 2" in run.output


def test_a_dry_run_on_converged_hosts_plans_no_change(converged: Site) -> None:
    run = converged.run("--dry")
    assert "0 changes would be made" in run.output
    assert run.output.count("would ") == 1
    before = converged.run("--dry", "--limit", "sparks")
    assert before.code == 0
    assert before.refused == set()


def test_a_changed_value_restarts_only_its_service(converged: Site) -> None:
    """A second service on the same host, and a neighbour, keep their containers."""
    two = (
        'services = {"qwen36": {"recipe": "qwen36-35b-a3b-heretic-dflash", '
        '"arguments": {"gpu_memory_utilization": 0.35}}, '
        '"second": {"recipe": "qwen36-35b-a3b-heretic-dflash", "port": 8001, '
        '"served_names": ["second"], '
        '"arguments": {"gpu_memory_utilization": 0.35, "max_model_len": 65536}}}\n'
    )
    (converged.folder / "group_data/sparks.py").write_text(two)
    converged.deploy("--limit", "sparks")
    before = {(h, s): container(h, s) for h in ("spark-1", "spark-2") for s in ("qwen36", "second")}
    converged.edit("group_data/sparks.py", "65536", "32768")
    run = converged.deploy("--limit", "spark-1")
    after = {(h, s): container(h, s) for h in ("spark-1", "spark-2") for s in ("qwen36", "second")}
    assert {key for key in before if before[key] != after[key]} == {("spark-1", "second")}
    change, down = run.host("spark-1")["changes"]
    assert down.startswith("down for ")
    assert re.fullmatch(r"service second: release \w{12} after \w{12}, restart", change)
    arguments = ssh("spark-1", "docker inspect -f '{{json .Args}}' sparkwright-second")
    assert '"--max-model-len","32768"' in arguments
    # A run reports a service that is not in the settings, and leaves its removal to the user.
    converged.restore("group_data/sparks.py")
    left = converged.deploy("--limit", "sparks")
    assert "sparkwright-second.service" in left.output
    assert container("spark-2", "second") == before["spark-2", "second"]
    for host in ("spark-1", "spark-2"):
        ssh(host, "sudo systemctl disable --now sparkwright-second")
        ssh(host, "sudo rm -r /etc/systemd/system/sparkwright-second.service")
        ssh(host, "sudo rm -r /opt/sparkwright/services/second")


def test_drift_on_a_host_is_found_and_undone(converged: Site) -> None:
    home = "/opt/sparkwright/services/qwen36"
    ssh("spark-1", f"sudo sed -i 's/262144/4096/' {home}/current/compose.yaml")
    ssh("spark-1", f"sudo chmod 644 {home}/secrets.env")
    ssh("spark-2", "sudo systemctl disable --now sparkwright-qwen36")
    assert converged.run("--dry").output.count("would service qwen36") == 2
    run = converged.deploy(refused={"hopper-1"})
    assert run.changed == {"spark-1", "spark-2"}
    assert "262144" in ssh("spark-1", f"sudo cat {home}/current/compose.yaml")
    assert ssh("spark-1", f"sudo stat -c %a {home}/secrets.env") == "600"
    assert ssh("spark-2", "systemctl is-enabled sparkwright-qwen36") == "enabled"


def test_a_boot_starts_the_service(converged: Site) -> None:
    machines.cut_power(MACHINES["spark-2"])
    converged.power_on()
    run = converged.deploy("--limit", "spark-2")
    assert [line for line in run.host("spark-2")["changes"] if "restart" not in line] == []
    assert run.host("spark-2")["services"][0]["smoke"]["failures"] == []


def test_an_engine_that_exits_with_0_is_restarted(converged: Site) -> None:
    """vLLM can end with code 0 when a worker dies (vllm#48966)."""
    before = container("spark-2")
    inside("spark-2", "docker", "kill", "--signal", "TERM", "sparkwright-qwen36")
    until(lambda: _running("spark-2") not in ("", before), "another container runs", 60)
    assert converged.deploy(refused={"hopper-1"}).changed == set()


def test_the_service_returns_after_docker_stops_and_starts(converged: Site) -> None:
    before = container("spark-2")
    inside("spark-2", "systemctl", "stop", "docker.service", "docker.socket")
    inside("spark-2", "systemctl", "start", "docker.socket", "docker.service")
    until(lambda: _running("spark-2") not in ("", before), "another container runs", 60)
    assert converged.deploy(refused={"hopper-1"}).changed == set()


def _running(host: str) -> str:
    """Id of the service's running container, or an empty text."""
    look = ["docker", "ps", "-q", "--no-trunc", "--filter", "name=^sparkwright-qwen36$"]
    return machines.inside(MACHINES[host], look).stdout.strip()


def test_preflight_runs_alone(converged: Site) -> None:
    done = subprocess.run(
        [*converged.command("--yes")[:-1], "roles.preflight.preflight"],
        cwd=converged.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Hopper" in done.stdout + done.stderr
    assert "Preflight" in done.stdout + done.stderr
