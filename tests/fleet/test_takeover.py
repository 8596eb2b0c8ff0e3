"""A host with a manually started server, which is taken over on request and restored at the end."""

from collections.abc import Iterator

import pytest

from tests.fleet.site import Site, bare, release, ssh

HOST = "spark-2"
#: Server on the port, which a card's command starts and Docker always restarts.
BY_HAND = (
    "docker create --name vllm-qwen36 --network host --restart unless-stopped"
    " --entrypoint python3 {image} -m http.server 8000"
)


@pytest.fixture
def by_hand(site: Site) -> Iterator[Site]:
    """One host with a manually started server, and without files of sparkwright."""
    site.power_on()
    site.repair()
    site.deploy("--limit", HOST)
    image = ssh(HOST, "docker inspect -f '{{.Config.Image}}' sparkwright-qwen36")
    ssh(HOST, f"docker tag {image} by-hand/vllm:latest")
    ssh(HOST, BY_HAND.format(image="by-hand/vllm:latest"))
    bare(HOST)
    ssh(HOST, f"docker rmi -f {image} && docker start vllm-qwen36")
    yield site
    ssh(HOST, "docker rm -f vllm-qwen36; docker rmi by-hand/vllm:latest || true")
    bare(HOST)


def by_hand_state() -> str:
    form = "{{.State.Running}} {{.HostConfig.RestartPolicy.Name}}"
    return ssh(HOST, f"docker inspect -f '{form}' vllm-qwen36")


def state_of_host() -> str:
    """All files and containers of a host that a run may change."""
    return ssh(
        HOST,
        "sudo find /opt /etc/systemd/system -printf '%p %m %u %l\\n' | sort;"
        " docker ps -a --format '{{.Names}} {{.State}}'; docker images --format '{{.Repository}}'",
    )


@pytest.mark.timeout(600)
def test_a_manual_server_is_refused_taken_over_and_restored(by_hand: Site) -> None:
    before = state_of_host()
    run = by_hand.deploy("--limit", HOST, refused={HOST})
    assert "port 8000 is taken by the container vllm-qwen36" in run.output
    assert "--data take_over=True" in run.output
    assert state_of_host() == before

    by_hand.deploy("--limit", HOST, "--data", "take_over=True")
    assert by_hand_state() == "false no"
    assert release(HOST)
    assert by_hand.deploy("--limit", HOST).changed == set()

    text = by_hand.sparkwright(
        "remove", "inventory/virtual.py", "--limit", HOST, "--weights", "--yes"
    )
    assert "container vllm-qwen36 is started again" in text
    assert by_hand_state() == "true unless-stopped"
    assert state_of_host() == before


@pytest.mark.timeout(600)
def test_a_manual_server_is_restored_if_the_service_gives_no_answers(by_hand: Site) -> None:
    by_hand.edit("group_data/sparks.py", '"port": 8000,',
                 '"port": 8000, "boot_seconds": 6, "environment":'
                 ' {"FAKE_VLLM_FAULT": "never-healthy"},')  # fmt: skip
    run = by_hand.run("--yes", "--limit", HOST, "--data", "take_over=True")
    assert run.code == 1
    assert by_hand_state() == "true unless-stopped"
    assert "reverted" in run.output
