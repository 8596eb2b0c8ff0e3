"""TLS on the controller: the CA's key is its owner's, certificates are renewed in time, and a
certificate that would not work stops the run before any host is touched."""

from __future__ import annotations

import datetime as dt
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from sparkwright.catalog import load_catalog
from sparkwright.config.inventory import HostInput
from sparkwright.config.places import CATALOG
from sparkwright.config.tls import CA
from sparkwright.extras.endpoints.command import FORMATS
from sparkwright.extras.endpoints.fleet import export
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy.haproxy import Proxies
from sparkwright.proxy.proxies import proxies_of
from sparkwright.site.fleet import PlannedHost, plan_fleet
from sparkwright.tls.authority import authority
from tests.libyaml import safe_load
from tests.unit.builders import SPARK, catalog, plan

NOW = dt.datetime.now(dt.UTC)

DAY = dt.timedelta(days=1)

NAMES = ("127.0.0.1", "localhost", "spark-1")

BEHIND = {"qwen36": {**SPARK["qwen36"], "proxy": True}}

SHIPPED = load_catalog([CATALOG])


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def leaf(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def proxies(data: Mapping[str, Any], everyone: Mapping[str, Any] | None = None) -> Proxies:
    found = proxies_of(_plan("spark-1", data), {"spark-1": data, **(everyone or {})})
    assert found
    return found


def _plan(host: str, data: Mapping[str, Any]) -> HostPlan:
    return plan(data["services"], host, **{k: v for k, v in data.items() if k != "services"})


class _Files:
    """A CA of the user's, and what it signed."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "home CA")])
        self.root = self._signed(self.name, self.key.public_key(), (), ca=True)
        self.own = rsa.generate_private_key(65537, 2048)
        Path("ca.pem").write_bytes(_pem(self.root))
        self.issue()

    def issue(
        self,
        names: tuple[str, ...] = ("spark-1", "*.home.arpa"),
        begin: dt.datetime = NOW - DAY,
        end: dt.datetime = NOW + 30 * DAY,
    ) -> None:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "host")])
        made = self._signed(subject, self.own.public_key(), names, begin, end)
        Path("host.pem").write_bytes(_pem(made))
        write_key(self.own)

    def itself(self) -> None:
        Path("host.pem").write_bytes(
            _pem(self._signed(self.name, self.key.public_key(), ("spark-1",)))
        )
        write_key(self.key)

    def _signed(
        self, subject: x509.Name, key: Any, names: tuple[str, ...], begin: dt.datetime = NOW - DAY,
        end: dt.datetime = NOW + 30 * DAY, *, ca: bool = False,
    ) -> x509.Certificate:  # fmt: skip
        builder = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self.name)
            .public_key(key).serial_number(x509.random_serial_number())
            .not_valid_before(begin).not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca, None), critical=True)
        )  # fmt: skip
        if names:
            named = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            builder = builder.add_extension(named, critical=False)
        return builder.sign(self.key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def write_key(key: Any, passphrase: bytes | None = None) -> None:
    path = Path("host.key")
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(passphrase)
            if passphrase
            else serialization.NoEncryption(),
        )
    )


@pytest.fixture
def users() -> _Files:
    """Files of the user's that work."""
    return _Files()


OURS = {"certificate": "host.pem", "key": "host.key", "ca": "ca.pem"}


def checked(tls: Any = OURS, services: Any = BEHIND, **data: Any) -> str:
    """What `check` and a deploy find, before any host is touched."""
    given = {"services": services, "tls": tls, **data}
    fleet = plan_fleet([HostInput("spark-1", given, lambda _: "group_data/all.py")])
    return "\n".join(f"{one.subject.place}: {one.observed}: {one.remedy}" for one in fleet.problems)


def test_every_client_is_told_the_ca_and_none_the_key(site: Path) -> None:
    authority(NOW)
    hosts = {"spark-1": PlannedHost(plan(BEHIND, tls="own"), catalog(), ())}
    endpoints = export(hosts, {"spark-1": "spark-1"}).endpoints
    ca = str(site / CA)
    assert endpoints[0].base_url == "https://spark-1:8000/v1"
    assert json.loads(FORMATS["json"](endpoints))["endpoints"][0]["ca"] == ca
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
        assert f"\n{name}={ca}\n" in FORMATS["env"](endpoints)
    assert safe_load(FORMATS["litellm"](endpoints))["litellm_settings"] == {"ssl_verify": ca}
    (service,) = safe_load(FORMATS["open-webui"](endpoints))["services"].values()
    assert service["volumes"] == [f"{ca}:{service['environment']['SSL_CERT_FILE']}:ro"]
    assert "https://spark-1:8000/v1" in FORMATS["openclaw"](endpoints)
