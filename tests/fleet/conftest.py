"""The virtual fleet as fixtures: started once for all tests, removed at the end, also after a
failure.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.downloads import HOST, fetch
from tests.fleet.proxy_clients import four_replicas
from tests.fleet.site import ROOT, Site, bare, hub, ssh
from tests.held import held_for_tests
from tests.install.conftest import user, wheel

#: Fixtures of a user who has only the wheel.
__all__ = ["user", "wheel"]
#: A separate command runs series of faults, which take longer than users wait.
FAULTS = (
    *("test_fetch_faults.py", "test_downloaders.py", "test_switch_faults.py"),
    *("test_address.py", "test_address_load.py", "test_proxy_removal.py"),
    *("test_sharing.py", "test_takeover.py", "test_tls.py", "test_key_rotation.py"),
    *("test_bare_host.py", "test_up.py", "test_containerd_store.py", "test_first_week.py"),
    *("test_imported_recipe.py", "test_own_model.py", "test_exclusive.py", "test_fabric.py"),
    "test_attacks_at_once.py",
    "test_dashboard.py",
    *("test_shown.py", "test_cluster_faults.py", "test_emergency.py", "test_notices.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the main job first, while the fleet is bare."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.name in FAULTS:
            item.add_marker(pytest.mark.faults)
    items.sort(
        key=lambda item: (item.path.is_relative_to(here), item.path.name != "test_main_job.py")
    )


@pytest.fixture(scope="session")
def fleet() -> Iterator[None]:
    """Fresh machines, for all tests. SPARKWRIGHT_TEST_FLEET=keep keeps the hosts afterwards."""
    if os.geteuid() != 0:
        pytest.fail("the virtual fleet is root's: run `make test`, which uses sudo")
    lab = [sys.executable, "-m", "lab"]
    keep = os.environ.get("SPARKWRIGHT_TEST_FLEET") == "keep"
    with held_for_tests():
        try:
            if not keep:
                subprocess.run([*lab, "down", "--keep-base"], cwd=ROOT, check=True)
            subprocess.run([*lab, "up"], cwd=ROOT, check=True)
            yield
        finally:
            if not keep:
                subprocess.run([*lab, "down", "--keep-base"], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def site(fleet: None, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A user's checkout of the project, with its own state."""
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def converged(site: Site) -> Site:
    """Restore the fleet to the plan of inventory/virtual.py after earlier tests."""
    site.power_on()
    site.repair()
    site.deploy(refused={"hopper-1"})
    return site


@pytest.fixture(scope="module")
def alone(site: Site) -> Iterator[Site]:
    """One host for tests of fetching, which already has the image."""
    site.power_on()
    site.repair()
    bare(HOST)
    site.only_fetching()
    fetch(site)
    yield site
    hub("DELETE")
    bare(HOST)


@pytest.fixture
def empty(alone: Site) -> Iterator[Site]:
    """The host without models and without faults."""
    hub("DELETE")
    ssh(HOST, "sudo systemctl stop 'sparkwright-fetch*'; sudo rm -rf /opt/models/*")
    hub("DELETE", "/control/counters")
    yield alone
    hub("DELETE")


@pytest.fixture(scope="module")
def behind(site: Site) -> Iterator[Site]:
    """Four replicas behind one address."""
    with four_replicas(site):
        yield site
