"""A service's place behind its proxy, with a real HAProxy: stopped, and started by anybody."""

from dataclasses import replace

from sparkwright.host.proxy import place
from sparkwright.host.proxy.pool import Pool
from tests.host.proxy.backend import Backend
from tests.host.proxy.conftest import Opener


def test_what_was_stopped_is_out_at_once_and_taken_back_by_its_health(
    start: Opener, first: Backend
) -> None:
    """Whoever starts it: a stop that left it drained would have a boot serve nobody."""
    proxy = start(first)
    proxy.until_status("one", "UP")
    admin, master = proxy.proxies.admin_socket, proxy.proxies.master_socket
    pool = Pool("llm", admin, master, 0, 0, replica="one")
    place.leave(pool)
    assert proxy.state("one").status == "DRAIN"
    assert proxy.get("/health").status == 503
    first.healthy = False
    place.shut(pool)
    assert proxy.state("one").status == "DOWN"
    assert proxy.get("/health").status == 503
    assert not place.back(pool, seconds=0.1)
    first.healthy = True
    assert place.back(pool)
    assert proxy.get("/health").status == 200
    place.leave(pool)
    assert place.back(pool, seconds=0.1), "people took it out: there is nothing to wait for"
    assert place.back(replace(pool, admin="/nowhere", master="/nowhere"), seconds=0.1)
