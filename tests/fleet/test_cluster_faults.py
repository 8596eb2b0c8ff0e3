"""Faults between the steps of a switch over two hosts: both hosts end with the same good release.

The engine is the lab's fake for vLLM, which joins and loses ranks like the observed vLLM
(lab/serving/fake_vllm/rank_link.py); test_cluster.py runs the real vLLM.
"""

import signal
from collections.abc import Iterator
from itertools import count

import pytest

from lab import fleet, machines
from tests.fleet.bad_tags import IMAGE, add_faults
from tests.fleet.cluster import BOTH, FOLLOWER, HEAD, INVENTORY, Pair, empty
from tests.fleet.site import MACHINES, Site, bare, inside, ssh, until
from tests.fleet.test_switch_faults import PLACE, STEPS, step

#: Sizes of the KV cache, each of which makes another release.
SIZES = count(2)


@pytest.fixture(scope="module")
def pair(site: Site) -> Iterator[Pair]:
    """Both hosts serve; a start and a first answer have short deadlines."""
    empty(site)
    made = Pair(
        site, "qwen36", "qwen36-35b-heretic", 120, recipe="lab-qwen36-2-ranks", port=8000,
        boot_seconds=40, first_answer_seconds=10,
    )  # fmt: skip
    add_faults(site)
    made.deploy()
    yield made
    site.power_on()
    for host in (HEAD, FOLLOWER):
        ssh(host, "sudo systemctl disable --now sparkwright-qwen36; docker rm -f sparkwright-qwen36"
            " || true")  # fmt: skip
        bare(host)
    site.restore(IMAGE)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("dark", [HEAD, FOLLOWER])
@pytest.mark.parametrize("held", STEPS)
def test_a_power_cut_at_each_step_leaves_both_hosts_on_one_release(
    pair: Pair, held: str, dark: str
) -> None:
    """The controller dies with the head; only the hosts can end the switch."""
    pair.whole()
    before = pair.release(HEAD)
    inside(HEAD, "sh", "-c", f"mkdir -p {PLACE}; rm -f {PLACE}/progress.json {PLACE}/hold-*")
    inside(HEAD, "touch", f"{PLACE}/hold-{held}")
    if held == "reverting":
        pair.serve(image_tag="lab-oom")
    else:
        pair.serve(arguments={"max_num_seqs": next(SIZES)})
    run = pair.site.start(*BOTH, inventory=INVENTORY)
    until(lambda: step(HEAD) == held, f"the head is {held}", 150)
    run.send_signal(signal.SIGKILL)
    run.wait()
    machines.cut_power(MACHINES[dark])
    if dark == HEAD:  # the host has no power: release the step on its disk
        upper = MACHINES[HEAD].home / "upper" / PLACE.removeprefix("/")
        (upper / f"hold-{held}").unlink(missing_ok=True)
    else:
        inside(HEAD, "sh", "-c", f"rm -f {PLACE}/hold-*")
    fleet.up((dark,))
    until(lambda: step(HEAD) == "ended", "the head has ended", 200)
    pair.whole()
    assert pair.release(HEAD) == pair.release(FOLLOWER)
    if held == "reverting":
        assert pair.release(HEAD) == before
