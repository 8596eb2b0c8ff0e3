"""TLS on the controller: only the owner reads the CA's key, certificates are renewed in time, and
an unusable certificate stops the run before any host is touched."""

import datetime as dt
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from sparkwright.config.inventory import HostInput
from sparkwright.config.tls import CA, CA_DIRECTORY
from sparkwright.documents.text_files import write
from sparkwright.findings.finding import Severity
from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy.haproxy import Proxies, render_proxies
from sparkwright.proxy.pools import planned_pools
from sparkwright.proxy.proxies import proxies_of
from sparkwright.site.desired import desired_fleet
from sparkwright.site.fleet import plan_fleet
from sparkwright.tls import names
from sparkwright.tls.authority import HOST_VALID, authority, host_certificate, pem, subject_names
from sparkwright.tls.host_certificates import address_in_clear, identity, of_user, prepare_ca
from sparkwright.tls.names import names_of, own_name
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, plan
from tests.unit.cli.answering import exits

cases = Tables(__file__)

NOW = dt.datetime.now(dt.UTC)

DAY = dt.timedelta(days=1)

NAMES = ("127.0.0.1", "localhost", "spark-1")

BEHIND = {"qwen36": {**SPARK["qwen36"], "proxy": True}}


pytestmark = pytest.mark.usefixtures("here")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def leaf(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def test_only_the_owner_reads_the_cas_key() -> None:
    made = authority(NOW)
    host_certificate(made, "spark-1", NAMES, NOW)
    assert mode(CA_DIRECTORY) == 0o700
    holding = [p for p in CA_DIRECTORY.rglob("*") if p.is_file() and "PRIVATE KEY" in p.read_text()]
    assert sorted(p.name for p in holding) == ["ca.pem", "spark-1.pem"]
    assert {mode(path) for path in holding} == {0o600}
    assert "PRIVATE" not in CA.read_text()
    assert "PRIVATE" not in repr(made)


@pytest.mark.parametrize("name", ["ca.pem", "hosts/spark-1.pem"])
def test_a_key_that_other_users_may_read_is_refused(name: str) -> None:
    host_certificate(authority(NOW), "spark-1", NAMES, NOW)
    (CA_DIRECTORY / name).chmod(0o640)
    with pytest.raises(UserError, match="other users can read this private key"):
        host_certificate(authority(NOW), "spark-1", NAMES, NOW)


def test_the_ca_signs_only_hosts() -> None:
    made = authority(NOW).certificate
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (
        True, True, 0,
    )  # fmt: skip
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    signed = leaf(host_certificate(authority(NOW), "spark-1", NAMES, NOW))
    assert not signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert list(signed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]


def verified(ca: str, text: str, name: str) -> bool:
    """Return whether a client that has imported a CA accepts a server's certificate for a name."""
    Path("served.pem").write_text(text)
    Path("imported.crt").write_text(ca)
    kind = "-verify_ip" if names.ip_address(name) else "-verify_hostname"
    command = ["openssl", "verify", "-CAfile", "imported.crt", kind, name, "served.pem"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OK" in done.stdout or "permitted subtree violation" in done.stderr
    return done.returncode == 0


@cases("name", "permitted")
def test_a_stolen_ca_key_can_sign_only_names_of_the_fleet(name: str, permitted: bool) -> None:
    """Clients trust an imported CA for all their connections."""
    signer = authority(NOW, names=names_of("spark-1", {"ssh_hostname": "203.0.113.7"}))
    assert signer.certificate.extensions.get_extension_for_class(x509.NameConstraints).critical
    assert verified(signer.pem, host_certificate(signer, "any", [name], NOW), name) is permitted


def test_an_added_host_renews_the_ca_for_its_name() -> None:
    everyone: dict[str, dict[str, object]] = {"spark-1": {"tls": "own"}, "clear": {}}
    assert list(prepare_ca(everyone)) == []
    before = authority(NOW)
    first = host_certificate(before, "spark-1", names_of("spark-1", {}), NOW)
    everyone["spark-2"] = {"tls": "own", "services": {"a": {"bind": "203.0.113.9"}}}
    (warning,) = prepare_ca(everyone)
    assert (warning.severity, warning.remedy.rpartition(": ")[2]) == ("warning", "sparkwright ca")
    assert list(prepare_ca(everyone)) == []
    after = authority(NOW)
    assert authority(NOW, names=names_of("spark-2", {}, ["203.0.113.9"])).pem == after.pem
    assert after.key.private_numbers() == before.key.private_numbers()
    assert after.certificate.not_valid_after_utc == before.certificate.not_valid_after_utc
    assert host_certificate(after, "spark-1", names_of("spark-1", {}), NOW) == first
    second = host_certificate(after, "spark-2", names_of("spark-2", {}), NOW)
    assert verified(before.pem, first, "spark-1")
    assert not verified(before.pem, second, "spark-2")
    assert verified(after.pem, first, "spark-1")
    assert verified(after.pem, second, "spark-2")
    assert not verified(after.pem, host_certificate(after, "x", ["clear"], NOW), "clear")


def test_a_ca_of_an_earlier_version_is_constrained_by_the_next_deploy() -> None:
    made = authority(NOW, names=["spark-1"])
    old = made.certificate
    kept = host_certificate(made, "spark-1", ["spark-1"], NOW)
    builder = x509.CertificateBuilder(
        old.issuer, old.subject, old.public_key(), old.serial_number, old.not_valid_before_utc,
        old.not_valid_after_utc,
        [item for item in old.extensions if item.oid != ExtensionOID.NAME_CONSTRAINTS],
    )  # fmt: skip
    write(CA_DIRECTORY / "ca.pem", pem(builder.sign(made.key, hashes.SHA256()), made.key), 0o600)
    bank = host_certificate(made, "bank", ["bank.example"], NOW)
    assert verified(authority(NOW, dry=True).pem, bank, "bank.example")
    assert len(list(prepare_ca({"spark-1": {"tls": "own"}}))) == 1
    assert not verified(CA.read_text(), bank, "bank.example")
    assert verified(CA.read_text(), kept, "spark-1")


def test_a_damaged_or_expired_ca_is_reported_with_a_remedy() -> None:
    authority(NOW)
    with pytest.raises(UserError, match=r"the CA is valid until .*\n.*sparkwright ca"):
        authority(NOW + 3600 * DAY)
    (CA_DIRECTORY / "ca.pem").write_text("nothing")
    with pytest.raises(UserError, match="can't be read"):
        authority(NOW)


def test_a_certificate_stays_until_a_third_of_its_time_is_left() -> None:
    issue = partial(host_certificate, authority(NOW), "spark-1", NAMES)
    first = issue(NOW)
    assert issue(NOW + HOST_VALID * 2 / 3 - DAY) == first
    renewed = issue(NOW + HOST_VALID * 2 / 3 + DAY)
    assert renewed != first
    assert leaf(renewed).public_key() != leaf(first).public_key()
    later = NOW + 2 * HOST_VALID
    assert leaf(renewed).not_valid_after_utc < later < leaf(issue(later)).not_valid_after_utc


def test_a_changed_name_ca_or_file_makes_a_new_certificate() -> None:
    first = host_certificate(authority(NOW), "spark-1", NAMES, NOW)
    named = host_certificate(authority(NOW), "spark-1", (*NAMES, "10.0.0.9"), NOW)
    assert set(subject_names(leaf(named))) == {*NAMES, "10.0.0.9"}
    assert named != first
    (CA_DIRECTORY / "ca.pem").unlink()
    signed = host_certificate(authority(NOW), "spark-1", (*NAMES, "10.0.0.9"), NOW)
    assert signed != named
    kept = CA_DIRECTORY / "hosts/spark-1.pem"
    kept.write_text(signed[:300])
    assert leaf(host_certificate(authority(NOW), "spark-1", NAMES, NOW))


def test_the_ca_is_made_under_gevent(tmp_path: Path) -> None:
    """gevent closes directories later, so that a lock on a directory would block forever."""
    code = (
        "from gevent import monkey, get_hub; monkey.patch_all(); get_hub()\n"
        "import datetime as dt, pathlib, sys\n"
        "from sparkwright.tls.authority import authority, host_certificate\n"
        "now = dt.datetime.now(dt.UTC)\n"
        "for name in ('spark-1', 'spark-2'):\n"
        "    host_certificate(authority(now, pathlib.Path(sys.argv[1])), name, (name,), now)\n"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "ca")]
    subprocess.run(arguments, check=True, timeout=60, cwd=ROOT)
    made = {path.name for path in (tmp_path / "ca/hosts").iterdir()}
    assert made == {"spark-1.pem", "spark-2.pem"}


def test_no_two_hosts_share_a_name_or_a_file() -> None:
    hosts = ("spark-1", "Spark-1", "spark 1", "10.0.0.1", "@local", "@docker/x", "10-0-0-1")
    assert len({own_name(host) for host in hosts}) == len(hosts)


def test_a_certificate_has_the_hosts_names_and_addresses() -> None:
    data = {"ssh_hostname": "192.168.1.11", "lan_address": "10.0.0.1"}
    assert set(names_of("spark-1", data, ["*", "0.0.0.0", "10.9.9.9"])) == {
        "spark-1", "spark-1.local", "spark-1.sparkwright.internal", "192.168.1.11", "10.0.0.1",
        "10.9.9.9", "localhost", "127.0.0.1", "::1",
    }  # fmt: skip
    assert not any("@" in name or "*" in name for name in names_of("@local", {}, ["*"]))


def proxies(data: Mapping[str, Any], everyone: Mapping[str, Any] | None = None) -> Proxies:
    hosts = {"spark-1": data, **(everyone or {})}
    assert not list(prepare_ca(hosts))
    pools = planned_pools(_plan(host, each) for host, each in hosts.items())
    result = proxies_of(_plan("spark-1", data), hosts, pools)
    assert result
    return result


def _plan(host: str, data: Mapping[str, Any]) -> HostPlan:
    planned = plan(data["services"], host, **{k: v for k, v in data.items() if k != "services"})
    return replace(planned, certificate=of_user(planned.settings, data, host, "tls"))


def test_a_second_plan_is_the_same() -> None:
    data = {"services": BEHIND, "tls": "own", "address": {}}
    other = {"spark-2": {"services": BEHIND, "tls": "own", "lan_address": "10.0.0.2"}}
    first = proxies(data, other)
    assert proxies(data, other) == first
    assert set(first.tls_files) == {first.certificate, first.replicas_ca}
    assert first.tls_files[first.certificate][1] == 0o600


def test_without_the_setting_no_certificate_is_made_and_no_release_changes() -> None:
    config = render_proxies(proxies({"services": BEHIND})).config
    assert "ssl" not in config
    assert not CA_DIRECTORY.exists()


@cases("data", "ids")
def test_an_address_in_clear_gives_a_warning(data: dict[str, Any], ids: list[str]) -> None:
    settings = plan(BEHIND, **data).settings
    findings = list(address_in_clear("spark-1", settings))
    assert [(each.id, each.severity) for each in findings] == [(i, Severity.WARNING) for i in ids]


def test_the_address_verifies_each_replica_by_its_name() -> None:
    data = {"services": {}, "tls": "own", "address": {}}
    own = {"spark-2": {"services": BEHIND, "tls": "own"}, "spark-3": {"services": BEHIND}}
    lines = [
        line.split()
        for line in render_proxies(proxies(data, own)).config.splitlines()
        if line.startswith("    server spark-")
    ]
    assert lines[0][6:] == [
        *("ssl", "verify", "required", "verifyhost", own_name("spark-2")),
        *("ca-file", "/opt/sparkwright/gateway/tls/replicas.pem", "check-ssl"),
    ]
    assert lines[1][6:] == []


def test_no_text_shows_the_private_key() -> None:
    result = proxies({"services": BEHIND, "tls": "own"})
    assert result.tls
    for shown in (repr(result), repr(result.tls_files), render_proxies(result).config):
        assert "PRIVATE" not in shown
        assert "BEGIN" not in shown


#: Keys of the CA, of the host, and a third key: an RSA key takes half a second.
KEYS = cache(lambda: [rsa.generate_private_key(65537, 2048) for _ in range(3)])


class _Files:
    """A user's own CA and its signed certificates."""

    def __init__(self) -> None:
        self.ca, self.own, _ = KEYS()
        Path("ca.pem").write_bytes(self.signed("home CA", self.ca, is_ca=True))
        self.issue()

    def issue(self, *names: str, common: str = "host", key: Any = None, **times: Any) -> None:
        names = names or ("spark-1", "*.home.arpa")
        Path("host.pem").write_bytes(self.signed(common, key or self.own, names, **times))
        write_key(key or self.own)

    def signed(
        self, name: str, key: Any, names: tuple[str, ...] = ("",), begin: dt.datetime = NOW - DAY,
        end: dt.datetime = NOW + 30 * DAY, *, is_ca: bool = False,
    ) -> bytes:  # fmt: skip
        subject, issuer = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, "home CA")
        )
        builder = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(begin).not_valid_after(end)
            .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        )  # fmt: skip
        if names[0]:
            named = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            builder = builder.add_extension(named, critical=False)
        return builder.sign(self.ca, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def write_key(key: Any, passphrase: bytes = b"") -> None:
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else None
    path = Path("host.key")
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            locked or serialization.NoEncryption(),
        )
    )


@pytest.fixture
def users() -> _Files:
    """Valid files of a user's certificate."""
    return _Files()


OURS = {"certificate": "host.pem", "key": "host.key", "ca": "ca.pem"}


def checked(tls: Any = OURS, services: Any = BEHIND, **data: Any) -> str:
    """Findings of `check` and a deploy, before any host is touched."""
    given = {"services": services, "tls": tls, **data}
    fleet = plan_fleet([HostInput("spark-1", given, lambda _: "group_data/all.py")])
    return "\n".join(
        f"{problem.subject.place}: {problem.observed}: {problem.remedy}"
        for problem in fleet.problems
    )


def test_a_valid_certificate_is_accepted(users: _Files) -> None:
    assert checked() == ""
    result = proxies({"services": BEHIND, "tls": OURS})
    assert result.tls is not None
    assert result.tls.count("BEGIN CERTIFICATE") == result.tls.count("BEGIN PRIVATE KEY") == 1
    assert not CA_DIRECTORY.exists()
    named = _plan("spark-1", {"services": BEHIND, "tls": OURS, "lan_address": "spark-1.home.arpa"})
    expected = identity("spark-1", named.tls)
    assert expected
    assert (expected.name, expected.ca) == ("spark-1.home.arpa", Path("ca.pem").read_text())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda files: files.issue(end=NOW - dt.timedelta(hours=1)),
         "tls.certificate: host.pem expired on"),
        (lambda files: files.issue(begin=NOW + DAY), "tls.certificate: host.pem is valid from"),
        (lambda files: files.issue("spark-2"),
         "tls.certificate: host.pem is a certificate for spark-2, but clients connect to spark-1"),
        (lambda files: files.issue(""), "tls.certificate: host.pem is a certificate for no name"),
        (lambda files: write_key(KEYS()[2]),
         "tls.key: host.key is not the key of host.pem"),
        (lambda files: write_key(files.own, b"secret"), "tls.key: host.key has a passphrase"),
        (lambda files: Path("host.key").chmod(0o644),
         "tls.key: other users can read the private key host.key (mode 644): chmod 600 host.key"),
        (lambda files: Path("host.key").unlink(), "tls.key: host.key can't be read: No such file"),
        (lambda files: Path("host.pem").write_text("x"),
         "tls.certificate: host.pem holds no certificate in PEM"),
        (lambda files: Path("ca.pem").write_text(authority(NOW).pem),
         "tls.ca: host.pem is not signed by ca.pem"),
    ],
    ids=["expired", "not yet", "another name", "no name", "another key", "passphrase", "readable",
         "missing", "no certificate", "another CA"],
)  # fmt: skip
def test_a_certificate_that_would_not_work_stops_the_run(
    users: _Files, spoil: Any, message: str
) -> None:
    spoil(users)
    assert f"group_data/all.py: {message}" in checked()


def test_a_fault_of_a_certificate_behind_an_address_is_named_once(users: _Files) -> None:
    users.issue(end=NOW - dt.timedelta(hours=1))
    data = {"services": BEHIND, "tls": OURS, "address": {}}
    inputs = [HostInput("spark-1", data, lambda _: "group_data/all.py")]
    with pytest.raises(UserError, match=r"1 problem[^s]") as raised:
        desired_fleet(inputs, {"spark-1": data})
    assert "host.pem expired on" in str(raised.value)


def test_a_self_signed_certificate_needs_a_ca(users: _Files) -> None:
    users.issue("spark-1", common="home CA", key=users.ca)
    alone = {"certificate": "host.pem", "key": "host.key"}
    assert 'host.pem is self-signed, so clients can\'t verify it: add "ca": "host.pem"' in (
        checked(alone)
    )
    assert checked({**alone, "ca": "host.pem"}) == ""


def test_a_wrong_tls_setting_is_reported() -> None:
    assert "tls: 'on': should be 'own'" in checked("on")
    assert "tls.key: this key is missing" in checked({"certificate": "host.pem"})
    assert "unknown key 'keys'" in checked({**OURS, "keys": "x"})


def test_a_service_that_would_answer_in_clear_is_refused() -> None:
    services = {"qwen36": {**SPARK["qwen36"], "proxy": False, "bind": "0.0.0.0"}}
    assert "the engine would answer other machines without TLS" in checked("own", services)
    services = {"qwen36": {**SPARK["qwen36"], "proxy": False, "bind": "127.0.0.1"}}
    assert checked("own", services) == ""


def test_the_command_prints_the_ca_and_no_key() -> None:
    done = exits(2, "ca")
    assert 'set tls = "own"' in done.output
    made = authority(NOW)
    done = exits(0, "ca")
    assert done.stdout == made.pem
    fingerprint = made.certificate.fingerprint(hashes.SHA256()).hex(":").upper()
    assert fingerprint in done.stderr
