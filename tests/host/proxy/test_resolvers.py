"""A load balancer whose replicas have names that DNS knows."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from sparkwright.proxy.haproxy import Replica, render_proxies
from tests.host.proxy.haproxy import HAPROXY, proxies_of


def test_haproxy_takes_names_that_it_is_to_ask_dns_for(place: Path) -> None:
    found = proxies_of(
        place, (Replica("spark-2", "spark-2.example.invalid", 8000, 8000, dns=True),)
    )
    found = replace(found, user=None)
    files = render_proxies(found)
    Path(found.config).parent.mkdir(parents=True, exist_ok=True)
    Path(found.runtime).mkdir(parents=True, exist_ok=True)
    Path(found.config).write_text(files.config)
    Path(found.waiting_room).write_text(files.waiting_room)
    Path(found.keys).touch()
    Path(found.engine).touch()
    assert HAPROXY is not None
    said = subprocess.run(
        [HAPROXY, "-c", "-f", found.config], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
