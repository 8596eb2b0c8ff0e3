"""Bad tags behind a load balancer: nobody notices those either."""

import pytest

from tests.fleet.load import Load
from tests.fleet.proxies import BALANCER, REPLICAS, deploy
from tests.fleet.site import Site, release


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tag", ["lab-never-healthy", "lab-wedge", "lab-crash", "lab-oom"])
def test_a_bad_rollout_is_not_noticed(behind: Site, tag: str) -> None:
    before = {host: release(host) for host in REPLICAS}
    with Load(BALANCER, 8080, behind.key) as load:
        run = deploy(behind, "--data", f'image_tag="{tag}"', code=1)
    assert {host: release(host) for host in REPLICAS} == before
    assert load.faults == []
    assert load.served > 50
    assert "did not get through" in run.output
