"""TLS, with a real HAProxy and real attackers: an eavesdropper, a false replica, and a local user
who takes a proxy's port.
"""

import datetime as dt
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from sparkwright.config.secrets import SecretText
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.proxy.haproxy import Replica
from sparkwright.tls.authority import Authority, authority, host_certificate
from sparkwright.tls.names import own_name
from tests.host.proxy.backend import Backend, serving
from tests.host.proxy.haproxy import KEY, RunningProxy, opened, proxies_of, replica, until

CHAT = "/v1/chat/completions"
NOW = dt.datetime.now(dt.UTC)
#: Names of one host: its address, and the name that other hosts verify.
NAMES = ("localhost", "127.0.0.1", own_name("spark-1"))


@pytest.fixture
def ca(folder: Path) -> Authority:
    """The site's CA."""
    return authority(NOW, folder / "ca", names=(*NAMES, "spark-1"))


@pytest.fixture
def other(folder: Path) -> Authority:
    """A CA of an attacker."""
    return authority(NOW, folder / "other-ca", names=NAMES)


def pem(signer: Authority, host: str = "spark-1", names: tuple[str, ...] = NAMES) -> SecretText:
    """A host's certificate and key."""
    return host_certificate(signer, host, names, NOW)


def served(text: str, folder: Path) -> ssl.SSLContext:
    """A server's side of TLS."""
    file = folder / "served.pem"
    file.touch(mode=0o600)
    file.write_text(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def trusting(signer: Authority) -> ssl.SSLContext:
    """A client that has imported a CA, and trusts no other CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=signer.pem)
    return context


@pytest.fixture
def proxy(folder: Path, first: Backend, ca: Authority) -> Iterator[RunningProxy]:
    """A proxy that serves https, and a client that has its CA."""
    with opened(proxies_of(folder, (replica(first),), tls=pem(ca))) as running:
        running.context = trusting(ca)
        yield running


def handshake(proxy: RunningProxy, context: ssl.SSLContext, name: str = "localhost") -> Any:
    """Protocol between client and proxy, and the serial number of the proxy's certificate."""
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname=name) as secured,
    ):
        certificate = secured.getpeercert()
        assert certificate
        return secured.version(), certificate["serialNumber"]


# --- Clients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_clients_with_the_ca_are_served(
    proxy: RunningProxy, ca: Authority, first: Backend, name: str
) -> None:
    assert proxy.post(CHAT).data == {"replica": "one"}
    assert proxy.post(CHAT, key="wrong").status == 401
    assert handshake(proxy, trusting(ca), name)[0] == "TLSv1.3"
    assert len(first.seen) == 1


def test_no_request_is_answered_in_clear(proxy: RunningProxy, first: Backend) -> None:
    request = f"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    assert b"HTTP/" not in proxy.raw(request.encode())
    assert b"HTTP/" not in proxy.raw(b"GET /health HTTP/1.0\r\n\r\n")
    assert first.seen == []


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_and_weak_ciphers_are_refused(proxy: RunningProxy, ca: Authority) -> None:
    def limited(version: ssl.TLSVersion, ciphers: str) -> ssl.SSLContext:
        context = trusting(ca)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
        context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
        return context

    assert handshake(proxy, limited(ssl.TLSVersion.TLSv1_2, "ALL"))[0] == "TLSv1.2"
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(proxy, limited(version, "ALL"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(proxy, limited(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA"))


def test_a_client_without_the_ca_refuses_the_connection(
    proxy: RunningProxy, other: Authority
) -> None:
    for context in (ssl.create_default_context(), trusting(other)):
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(proxy, context)


def test_a_certificate_is_valid_only_for_its_host(proxy: RunningProxy, ca: Authority) -> None:
    for name in ("spark-2", own_name("spark-2"), "10.0.0.1", "example.com"):
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(proxy, trusting(ca), name)


def test_a_host_key_can_sign_no_certificate(folder: Path, first: Backend, ca: Authority) -> None:
    stolen = pem(ca)
    key = serialization.load_pem_private_key(stolen.encode(), None)
    signer = Authority(
        folder / "forged/ca.pem",
        x509.load_pem_x509_certificate(stolen.encode()),
        key,  # type: ignore[arg-type]
    )
    (folder / "forged").mkdir()
    forged = SecretText(pem(signer, "spark-2", ("localhost",)) + signer.pem)
    with (
        opened(proxies_of(folder, (replica(first),), tls=forged)) as posing,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        handshake(posing, trusting(ca))


def test_only_the_owner_reads_the_private_key(proxy: RunningProxy) -> None:
    certificate = Path(proxy.proxies.certificate)
    assert certificate.stat().st_mode & 0o777 == 0o600
    assert proxy.post(CHAT).status == 200
    secret = certificate.read_text().partition("PRIVATE KEY-----")[2][:60]
    assert secret
    for file in (Path(proxy.proxies.config), proxy.log):
        assert secret not in file.read_text()
    for process in proxy.workers():
        for kind in ("cmdline", "environ"):
            assert secret.encode() not in Path(f"/proc/{process}/{kind}").read_bytes()
    for command in ("show ssl cert", f"show ssl cert {certificate}", "show env"):
        assert secret not in proxy.ask(command)


# --- Replicas ----------------------------------------------------------------------------------


def balancing(backend: Backend, ca: Authority, host: str = "spark-1") -> Replica:
    """A replica in the form that the address uses, with the name of its host."""
    return replace(replica(backend), tls=TlsIdentity(own_name(host), ca.pem))


def test_a_replica_of_this_ca_resumes_sessions(folder: Path, ca: Authority) -> None:
    with serving("right", served(pem(ca), folder)) as right:
        settings = {"tls": pem(ca)}
        with opened(proxies_of(folder, (balancing(right, ca),), **settings)) as proxy:
            proxy.context = trusting(ca)
            proxy.until_status("right", "UP")
            assert [proxy.post(CHAT).data for _ in range(8)] == [{"replica": "right"}] * 8
            # Each of HAProxy's two threads has a session of its own.
            assert sum(not item.resumed for item in right.seen) <= 2


def test_an_unverifiable_replica_gets_no_request(
    folder: Path, ca: Authority, other: Authority
) -> None:
    """Replicas with another CA, with another host's certificate or without TLS get no request."""
    with ExitStack() as stack:
        right = stack.enter_context(serving("right", served(pem(ca), folder)))
        alien = stack.enter_context(serving("alien", served(pem(other), folder)))
        posing = served(pem(ca, "spark-9", ("localhost", own_name("spark-9"))), folder)
        neighbour = stack.enter_context(serving("neighbour", posing))
        clear = stack.enter_context(serving("clear"))
        replicas = tuple(balancing(item, ca) for item in (right, alien, neighbour, clear))
        proxy = stack.enter_context(opened(proxies_of(folder, replicas)))
        for bad in ("alien", "neighbour", "clear"):
            proxy.until_status(bad, "DOWN")
        assert {proxy.post(CHAT).data["replica"] for _ in range(8)} == {"right"}
        assert [item.seen for item in (alien, neighbour, clear)] == [[], [], []]


def test_an_attacker_on_a_replicas_port_gets_no_request(
    folder: Path, ca: Authority, other: Authority
) -> None:
    """The attacker takes over between two health checks, while a session could be resumed."""
    settings = {"check_milliseconds": 60_000, "wait_seconds": 1}
    with ExitStack() as stack:
        with serving("one", served(pem(ca), folder)) as first:
            proxies = proxies_of(folder, (balancing(first, ca),), **settings)
            proxy = stack.enter_context(opened(proxies))
            assert proxy.post(CHAT).status == 200
        thief = stack.enter_context(serving("one", served(pem(other), folder), first.port))
        assert proxy.post(CHAT).status == 503
        assert (len(first.seen), thief.seen) == (1, [])


# --- Renewing, turning on and off --------------------------------------------------------------


def test_a_certificate_is_renewed_while_a_stream_runs(
    proxy: RunningProxy, first: Backend, ca: Authority
) -> None:
    stream = proxy.send("POST", CHAT, {"stream": 2})
    first.go.release()
    assert stream.readline() == b"data: 0 of one\n"
    _, before = handshake(proxy, trusting(ca))
    proxy.change(tls=pem(ca, names=(*NAMES, "spark-1")))
    assert handshake(proxy, trusting(ca))[1] != before
    assert proxy.post(CHAT).status == 200
    first.go.release()
    assert stream.read().endswith(b"data: 1 of one\n\n")


def test_switching_tls_cuts_no_request_off(folder: Path, first: Backend, ca: Authority) -> None:
    with opened(proxies_of(folder, (replica(first),))) as proxy:
        clear = proxy.send("POST", CHAT, {"stream": 2})
        first.go.release()
        assert clear.readline() == b"data: 0 of one\n"
        proxy.change(tls=pem(ca))
        proxy.context = trusting(ca)
        secured = proxy.send("POST", CHAT, {"stream": 1})
        proxy.change(tls=None)
        proxy.context = None
        assert proxy.post(CHAT).status == 200
        for _ in range(2):
            first.go.release()
        assert clear.read().endswith(b"data: 1 of one\n\n")
        assert secured.read().endswith(b"data: 0 of one\n\n")


def test_replicas_turn_tls_on_and_off_with_their_address(folder: Path, ca: Authority) -> None:
    """HAProxy's reload keeps drained replicas, but not the protocol to the replicas."""
    with serving("one") as clear:
        plain = (replica(clear),)
    with opened(proxies_of(folder, plain)) as balancer:
        for replicas, context in (
            ((balancing(clear, ca),), served(pem(ca), folder)),
            (plain, None),
        ):
            balancer.change(replicas=replicas)
            with serving("one", context, clear.port, clear.health_port):
                balancer.until_status("one", "UP")
                assert balancer.post(CHAT).data == {"replica": "one"}


# --- The smoke test of the host ----------------------------------------------------------------


@pytest.fixture
def asked(folder: Path) -> SmokeRequest:
    """Request to a host's smoke test."""
    secrets = folder / "secrets.env"
    secrets.touch(mode=0o600)
    secrets.write_text(f"VLLM_API_KEY={KEY}\n")
    return SmokeRequest("llm", "x.service", "127.0.0.1", 1, str(secrets), ("m",), 1, 1)


def test_the_smoke_test_speaks_https(proxy: RunningProxy, asked: SmokeRequest) -> None:
    asked = replace(asked, proxy=("127.0.0.1", proxy.port), certificate=proxy.proxies.certificate)
    until(lambda: check.proxy_fault(asked) is None, "200 with the key, 401 without it")


def test_the_smoke_test_sends_its_key_to_no_other_server(
    folder: Path, asked: SmokeRequest, ca: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local user takes the proxy's port while it is stopped, with a certificate of the same
    CA.
    """
    monkeypatch.setattr(check, "_PROXY_SECONDS", 0)
    mine = folder / "host.pem"
    mine.touch(mode=0o600)
    mine.write_text(pem(ca))
    with serving("thief", served(pem(ca, "spark-2"), folder)) as thief:
        asked = replace(asked, proxy=("127.0.0.1", thief.port), certificate=str(mine))
        assert "certificate verify failed" in (check.proxy_fault(asked) or "")
    with serving("thief") as thief:
        asked = replace(asked, proxy=("127.0.0.1", thief.port))
        assert check.proxy_fault(asked)
        assert thief.seen == []
