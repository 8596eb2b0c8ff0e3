"""Every unit has the sandbox, and its exceptions are named and have a reason."""

from pathlib import Path

import pytest

from sparkwright.checks.service.watch_plan import watch_of
from sparkwright.config.templates import template
from sparkwright.host.lib import sandbox
from sparkwright.proxy.haproxy import render_proxies
from sparkwright.proxy.proxies import health_unit, proxies_of
from tests import systemd
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, plan, wanted

TABLES = Tables(__file__)


#: Highest exposure of each unit by `systemd-analyze security`.
MOST = TABLES.data["MOST"]


def rendered() -> dict[str, str]:
    """Every unit on a host, by its template."""
    services = {"qwen36": {**SPARK["qwen36"], "proxy": True}}
    planned = plan(services)
    services_ = wanted(planned).services
    proxies = proxies_of(planned, {planned.host: {"services": services}})
    watch = watch_of(planned, services_)
    assert proxies is not None
    assert watch is not None
    path = "/opt/sparkwright/state/switch"
    recover = template("serving/recover.service.j2")
    return {
        "serving/unit.service.j2": services_[0].unit_text,
        "serving/recover.service.j2": recover.render(
            place=path, program="pass", services_root="/opt/sparkwright"
        ),
        "gateway/unit.service.j2": render_proxies(proxies).unit,
        "gateway/health.service.j2": health_unit(planned),
        "watch/unit.service.j2": watch.service,
        "peers/server.service.j2": template("peers/server.service.j2").render(
            unit="sparkwright-share-x",
            command="/usr/bin/true",
            root="/opt/sparkwright/root",
            places="/opt/models",
            modest="Nice=10",
        ),
        "gateway/models.service.j2": template("gateway/models.service.j2").render(
            home="/opt/sparkwright/address", document="models.json", user="sparkwright-models"
        ),
        "gateway/open-webui.service.j2": template("gateway/open-webui.service.j2").render(
            home="/opt/sparkwright/address/open-webui", socket="/run/x/s", data="/var/lib/x"
        ),
        **{
            f"exclusive/{name}.service.j2": template(f"exclusive/{name}.service.j2").render(
                place=path, services_root="/opt/sparkwright"
            )
            for name in ("schedule", "wake")
        },
    }


UNITS = rendered()


def test_no_template_of_a_unit_is_left_out() -> None:
    paths = (ROOT / "templates").rglob("*.service.j2")
    # This unit runs on the controller as the user, and reads the user's password store and SSH
    # agent.
    paths = (path for path in paths if path.parent.name != "notify")
    assert {str(path.relative_to(ROOT / "templates")) for path in paths} == set(UNITS)
    assert set(MOST) == set(UNITS)


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_has_every_sandbox_setting(name: str) -> None:
    result = systemd.settings(UNITS[name])
    assert set(result) >= systemd.NAMES
    # A unit's own setting replaces the shared setting, since systemd would merge values of a list.
    for item, values in systemd.settings(sandbox.lines()).items():
        assert (
            result[item] == values
            or not set(values) & set(result[item])
            or item == "SystemCallFilter"
        )


@pytest.mark.parametrize("name", UNITS)
def test_systemd_rates_a_unit_as_sandboxed(name: str, tmp_path: Path) -> None:
    unit = f"sparkwright-{name.replace('/', '-').removesuffix('.j2')}"
    assert systemd.exposure(tmp_path, unit, UNITS[name]) <= MOST[name]
    assert systemd.faults(tmp_path, unit, UNITS[name]) == []


def test_a_unit_without_the_sandbox_is_found(tmp_path: Path) -> None:
    bare = "[Service]\nExecStart=/usr/bin/python3 -c pass\n"
    assert systemd.exposure(tmp_path, "sparkwright-bare.service", bare) > 9
    problems = f"{bare}ProtectSystem=perhaps\n"
    assert systemd.faults(tmp_path, "sparkwright-wrong.service", problems)


def test_a_units_setting_replaces_the_shared_setting() -> None:
    result = sandbox.properties(
        "ProtectHome=read-only", "SystemCallFilter=@system-service", "Nice=5"
    )
    assert [item for item in result if item.startswith("ProtectHome=")] == ["ProtectHome=read-only"]
    filters = [item for item in result if item.startswith("SystemCallFilter=")]
    assert filters == ["SystemCallFilter=@system-service"]
    assert result[-1] == "Nice=5"
    assert set(result) >= {
        item for item in sandbox.SET if "Home" not in item and "Filter" not in item
    }
