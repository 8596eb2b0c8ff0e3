"""A site's private CA: made on the controller, where its key stays.

The CA signs only the certificates of hosts: path length 0 excludes other CAs, and name constraints
exclude names of other sites. Certificates for clients and code are also excluded.
"""

import contextlib
import datetime as dt
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_network
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sparkwright.config.secrets import SecretText, private_text
from sparkwright.config.tls import CA, CA_DIRECTORY
from sparkwright.documents.text_files import make_folder, write
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.tls.names import ip_address, label

_MESSAGES = Messages(__file__)
CA_VALID = dt.timedelta(days=3650)
#: Validity of a host's certificate. Most pauses between two deploys are shorter; a deploy renews
#: the certificate when less than a third is left.
HOST_VALID = dt.timedelta(days=365)
#: Margin for clocks that are behind.
_EARLIER = dt.timedelta(hours=1)
_PRIVATE = 0o600
#: Addresses that every CA permits, all of them private: hosts' addresses change within a range.
_RANGES = [ip_network(item) for item in (
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
    "127.0.0.0/8", "fc00::/7", "fe80::/10", "::1")]  # fmt: skip
_KEY = "this private key"


@dataclass(frozen=True)
class Authority:
    """The CA. ``path`` is the file with the CA's key and certificate."""

    path: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> str:
        """The CA's certificate, which clients import."""
        return pem(self.certificate)


def authority(
    now: dt.datetime, folder: Path = CA_DIRECTORY, *, names: Iterable[str] = (), dry: bool = False
) -> Authority:
    """Return the site's CA, and make the CA if it is missing.

    Args:
        names: hosts' names. If the CA does not permit the names, a new certificate permits these
            names, too; key and subject stay, so the certificates of hosts stay valid.
        dry: whether nothing is written: a missing CA is made for this run alone.

    Raises:
        UserError: other users may read the CA's key, or the CA is damaged or expired.
    """
    path = folder / "ca.pem"
    if dry:
        return _read(path, now) if path.exists() else _for_this_run(path)
    with _alone(folder):
        kept = _read(path, now) if path.exists() else None
        if not (wanted := _subtrees(names)) <= (permitted := _permitted(kept)):
            write(path, _made(now, permitted | wanted, kept), _PRIVATE)
        result = _read(path, now)
        public = folder / CA.name
        if not public.exists() or public.read_text(encoding="utf-8") != result.pem:
            write(public, result.pem, 0o644)
    return result


def host_certificate(
    signer: Authority, host: str, names: Sequence[str], now: dt.datetime, *, dry: bool = False
) -> SecretText:
    """Return a host's certificate and key, PEM: the stored pair, or a new pair if the stored pair
    is not signed by this CA, is not for these names, or has less than a third of its time left. A
    new pair is stored unless ``dry``.
    """
    path = signer.path.parent / "hosts" / f"{label(host)}.pem"
    with contextlib.nullcontext() if dry else _alone(signer.path.parent):
        if path.exists():
            kept = f"{private_text(path, _KEY)}\n"
            if _still_good(kept, signer, names, now):
                return SecretText(kept)
        end = min(now + HOST_VALID, signer.certificate.not_valid_after_utc)
        made = _issued(signer, label(host), map(_general, names), now, end)
        if not dry:
            write(path, made, _PRIVATE)
    return SecretText(made)


def _still_good(pem: str, signer: Authority, names: Sequence[str], now: dt.datetime) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
        key = serialization.load_pem_private_key(pem.encode(), None)
        certificate.verify_directly_issued_by(signer.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (
        certificate.public_key() == key.public_key()
        and set(subject_names(certificate)) == set(names)
        and begin <= now
        and end - now >= HOST_VALID / 3
    )


def subject_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the names and addresses in a certificate."""
    try:
        result = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (
        *result.get_values_for_type(x509.DNSName),
        *map(str, result.get_values_for_type(x509.IPAddress)),
    )


def _general(name: str) -> x509.GeneralName:
    return x509.IPAddress(ip) if (ip := ip_address(name)) else x509.DNSName(name)


def _subtrees(names: Iterable[str]) -> frozenset[x509.GeneralName]:
    """Return the name constraints that permit hosts; a name permits its subdomains, too."""
    result: set[x509.GeneralName] = {x509.DNSName("localhost"), *map(x509.IPAddress, _RANGES)}
    for name in names:
        if (ip := ip_address(name)) is None:
            result.add(x509.DNSName(name))
        elif not any(ip in item for item in _RANGES):
            result.add(x509.IPAddress(ip_network(ip)))
    return frozenset(result)


def _permitted(kept: Authority | None) -> frozenset[x509.GeneralName]:
    """Return the name constraints of a CA.

    A certificate of an earlier version has no constraints, and permits every name.
    """
    extensions = kept.certificate.extensions if kept else ()
    every = [item.value for item in extensions if isinstance(item.value, x509.NameConstraints)]
    return frozenset(subtree for item in every for subtree in item.permitted_subtrees or ())


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Lock the directory, so that two concurrent runs make only one CA."""
    make_folder(directory, 0o700)
    directory.chmod(0o700)
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        # close() would release the lock later: gevent, under which pyinfra runs, postpones the
        # call.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


@cache
def _for_this_run(path: Path) -> Authority:
    """Return a CA that is not stored, for a dry run."""
    pem = _made(dt.datetime.now(dt.UTC), _subtrees(()), None).encode()
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Authority(path, x509.load_pem_x509_certificate(pem), key)


def _read(path: Path, now: dt.datetime) -> Authority:
    pem = private_text(path, _KEY).encode()
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise _broken(path, "this is not a CA: certificate and key can't be read") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != (
        certificate.public_key()
    ):
        raise _broken(path, "the CA's certificate does not match its key")
    if certificate.not_valid_after_utc <= now + HOST_VALID / 3:
        raise _broken(path, f"the CA is valid until {certificate.not_valid_after_utc:%Y-%m-%d}")
    return Authority(path, certificate, key)


def _broken(path: Path, problem: str) -> UserError:
    return _MESSAGES.refusal("broken-ca", str(path), problem=problem, folder=path.parent)


def _made(now: dt.datetime, subtrees: Iterable[x509.GeneralName], kept: Authority | None) -> str:
    """Return certificate and key of a CA, PEM; a kept CA's key, subject and expiry stay."""
    if kept is None:
        return _issued(None, f"sparkwright CA {now:%Y-%m-%d}", subtrees, now, now + CA_VALID)
    name = kept.certificate.subject.rfc4514_string().removeprefix("CN=")
    return _issued(None, name, subtrees, now, kept.certificate.not_valid_after_utc, kept.key)


def _issued(
    signer: Authority | None, name: str, names: Iterable[x509.GeneralName],
    now: dt.datetime, end: dt.datetime, key: ec.EllipticCurvePrivateKey | None = None,
) -> str:  # fmt: skip
    """Return a key and its certificate, PEM: for a host, or for a CA if no signer is given. Without
    ``key``, the key is new. ``names`` are the names in a host's certificate, or the names that a CA
    permits.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signing = key
    if signer:
        issuer, signing = signer.certificate.subject, signer.key
    authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    ca = x509.BasicConstraints(ca=signer is None, path_length=None if signer else 0)
    named = x509.SubjectAlternativeName(names) if signer else x509.NameConstraints(names, None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(end)
        .add_extension(ca, critical=True)
        .add_extension(_usage(signs=signer is None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority_key, critical=False)
        .add_extension(named, critical=signer is None)
    )
    return pem(builder.sign(signing, hashes.SHA256()), key)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs,
        content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def pem(*parts: x509.Certificate | PrivateKeyTypes) -> str:
    """Return certificates and keys in PEM, one after another; keys have no passphrase."""
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return b"".join(
        part.public_bytes(serialization.Encoding.PEM)
        if isinstance(part, x509.Certificate)
        else part.private_bytes(serialization.Encoding.PEM, pkcs8, plain)
        for part in parts
    ).decode()
