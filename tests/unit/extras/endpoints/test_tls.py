"""TLS on the controller: the CA's key is its owner's, certificates are renewed in time, and a
certificate that would not work stops the run before any host is touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkwright.config.tls import CA
from sparkwright.extras.endpoints.clients import render
from sparkwright.extras.endpoints.fleet import export
from sparkwright.site.fleet import PlannedHost
from sparkwright.tls.authority import authority
from tests.libyaml import safe_load
from tests.unit.builders import catalog, plan
from tests.unit.security.test_tls import BEHIND, NOW


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_client_is_told_the_ca_and_none_the_key(site: Path) -> None:
    authority(NOW)
    hosts = {"spark-1": PlannedHost(plan(BEHIND, tls="own"), catalog())}
    endpoints = export(hosts, {"spark-1": "spark-1"}).endpoints
    ca = str(site / CA)
    assert endpoints[0].base_url == "https://spark-1:8000/v1"
    assert json.loads(render("json", endpoints))["endpoints"][0]["ca"] == ca
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
        assert f"\n{name}={ca}\n" in render("env", endpoints)
    assert safe_load(render("litellm", endpoints))["litellm_settings"] == {"ssl_verify": ca}
    (service,) = safe_load(render("open-webui", endpoints))["services"].values()
    assert service["volumes"] == [f"{ca}:{service['environment']['SSL_CERT_FILE']}:ro"]
    assert "https://spark-1:8000/v1" in render("openclaw", endpoints)
