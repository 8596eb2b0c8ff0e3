"""The acceptance of a box: deep smoke, doctor, watch, and the fleet on one page."""

import json
from collections.abc import Iterator

import pytest

from tests.fleet.site import GOOD, Site, all_bare, bare, inside, ssh

LIMIT = ("--limit", "sparks", "--limit", "rtx-1")
STATE = "/opt/sparkwright/state/watch.json"


@pytest.fixture(scope="module")
def proved(site: Site) -> Iterator[Site]:
    """A fleet as planned."""
    all_bare(site)
    site.deploy(refused={"hopper-1"})
    yield site
    site.repair()
    bare("rtx-1")


@pytest.mark.timeout(600)
def test_the_report_shows_every_passed_check_of_the_recipe(proved: Site) -> None:
    text = proved.sparkwright("smoke", "inventory/virtual.py", *LIMIT)
    assert text.count("image") >= len(GOOD)
    proved.sparkwright("history", "inventory/virtual.py", *LIMIT)
    hosts = [word for host in GOOD for word in ("--limit", host)]
    proved.sparkwright("report", "inventory/virtual.py", *hosts)
    page = (proved.folder / ".sparkwright/report.html").read_text()
    for name in ("spark-1", "json-schema", "prefix-cache", "2026-08-17-v0.27.1-slim"):
        assert name in page
    assert proved.key not in page


def test_a_failed_deep_check_is_reported_with_its_remedy(proved: Site) -> None:
    """The service passes the short test at a deploy, but not the deep test."""
    fault = '"port": 8000, "environment": {"FAKE_VLLM_FAULT": "ignores-schema"},'
    proved.edit("group_data/rtx50.py", '"port": 8000,', fault)
    proved.deploy("--limit", "rtx-1")
    text = proved.sparkwright("smoke", "inventory/virtual.py", "--limit", "rtx-1", code=1)
    assert [line for line in text.splitlines() if "json-schema" in line and "FAILED" in line]
    assert not [line for line in text.splitlines() if "tools" in line and "FAILED" in line]
    proved.edit("group_data/rtx50.py", fault, '"port": 8000,')
    proved.deploy("--limit", "rtx-1")


@pytest.mark.timeout(300)
def test_the_doctor_reports_each_fault_and_no_finding_on_a_healthy_host(proved: Site) -> None:
    well = proved.sparkwright("doctor", "inventory/virtual.py", "--limit", "spark-1")
    assert "spark-1" in well
    proved.gpu("spark-2", "driver-dead")
    try:
        text = proved.sparkwright("doctor", "inventory/virtual.py", "--limit", "spark-2", code=1)
    finally:
        proved.gpu("spark-2")
    assert "gpu-silent" in text or "driver-half-updated" in text


@pytest.mark.timeout(300)
def test_the_watch_detects_drift_and_status_shows_the_drift(proved: Site) -> None:
    assert ssh("spark-2", "systemctl is-active sparkwright-watch.timer") == "active"
    home = "/opt/sparkwright/services/qwen36"
    inside("spark-2", "sh", "-c", f"echo '# mine' >> {home}/current/compose.yaml")
    for _ in range(2):  # a deploy in progress may cause one failure
        inside("spark-2", "systemctl", "start", "sparkwright-watch.service")
    (finding,) = json.loads(inside("spark-2", "cat", STATE))["findings"]
    assert finding["name"] == "drift"
    limit = ("--limit", "spark-2")
    assert "drift" in proved.sparkwright("status", "inventory/virtual.py", *limit, code=1)
    proved.deploy(*limit)
    inside("spark-2", "systemctl", "start", "sparkwright-watch.service")
    assert "drift" not in proved.sparkwright("status", "inventory/virtual.py", *limit)
