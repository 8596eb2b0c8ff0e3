"""A service's proxy: removed and added again, and no rollback across the change."""

import pytest

from tests.fleet.proxy_clients import status
from tests.fleet.site import Site, answers, container, release

HOST, ADDRESS = "spark-1", "10.213.77.11"
LIMIT = ("inventory/virtual.py", "--limit", HOST)


def test_a_rollback_across_a_change_of_proxy_is_refused(converged: Site) -> None:
    assert status(ADDRESS, 8000, "GET", "/v1/models") == 401
    converged.edit("group_data/sparks.py", '"port": 8000,', '"port": 8000, "proxy": False,')
    assert converged.deploy("--limit", HOST).changed == {HOST}
    assert answers(converged, HOST)
    with pytest.raises(ConnectionRefusedError):  # only the host reaches the service
        status(ADDRESS, 8000, "GET", "/v1/models")
    converged.edit("group_data/sparks.py", ' "proxy": False,', "")
    assert converged.deploy("--limit", HOST).changed == {HOST}
    assert status(ADDRESS, 8000, "GET", "/v1/models") == 401
    assert status(ADDRESS, 8000, "GET", "/v1/models", converged.key) == 200
    running, kept = container(HOST), release(HOST)
    # The newest kept release before the running release was made without a proxy.
    text = converged.sparkwright("rollback", *LIMIT, "--yes", code=1)
    assert "was made without a proxy, and the plan has a proxy" in text
    assert (container(HOST), release(HOST)) == (running, kept)
    assert converged.deploy("--limit", HOST).changed == set()
