"""The user's own certificate: read and checked before any host is touched."""

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from sparkwright.config.secrets import SecretText, exposure
from sparkwright.config.settings import TlsSettings
from sparkwright.findings.user_error import Fault, Messages, Problems, mistakes, refusal
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.tls.authority import pem, subject_names
from sparkwright.tls.names import Certificate, covers, is_name

_MESSAGES = Messages(__file__)


def user_certificate(
    settings: TlsSettings, host: str, address: str, where: str, now: dt.datetime
) -> Certificate:
    """Return the user's certificate for a host.

    Args:
        address: address to which clients and other hosts connect; the certificate must cover the
            address.
        where: file and key of the setting, for messages.

    Raises:
        UserError: names every fault of the certificate.
    """
    problems = Problems()
    chain: tuple[x509.Certificate, ...] = ()
    roots: tuple[x509.Certificate, ...] = ()
    key: PrivateKeyTypes | None = None
    with problems.collected():
        chain = _certificates(settings.certificate, f"{where}.certificate", host)
    with problems.collected():
        roots = _certificates(settings.ca, f"{where}.ca", host) if settings.ca else ()
    with problems.collected():
        key = _key(settings.key, f"{where}.key", host)
    if chain:
        faults = [*_time_and_name(settings.certificate, chain[0], address, now)]
        if not problems and not faults:
            faults += _signed(settings, chain, roots)
        problems += mistakes(where, faults, host)
        if key is not None and key.public_key() != chain[0].public_key():
            facts = {"key": settings.key, "certificate": settings.certificate}
            problems.append(_MESSAGES.mistake("another-key", f"{where}.key", host, **facts))
    problems.stop()
    assert key is not None
    named = [address, *(name for name in subject_names(chain[0]) if "*" not in name)]
    name = next((item for item in named if is_name(item)), None)
    return Certificate(SecretText(pem(*chain, key)), TlsIdentity(name, pem(*roots) or None))


def _read(file: str, where: str, host: str) -> bytes:
    try:
        return Path(file).expanduser().read_bytes()
    except OSError as error:
        facts = {"file": file, "reason": error.strerror}
        raise _MESSAGES.refusal("unreadable", where, host, **facts) from None


def _certificates(file: str, where: str, host: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(_read(file, where, host)))
    except ValueError:
        raise _MESSAGES.refusal("no-certificate", where, host, file=file) from None


def _key(file: str, where: str, host: str) -> PrivateKeyTypes:
    text = _read(file, where, host)
    if fault := exposure(Path(file).expanduser(), f"the private key {file}"):
        raise refusal(where, *fault, host)
    try:
        return serialization.load_pem_private_key(text, None)
    except TypeError:
        message = "passphrase"
    except ValueError:
        message = "no-private-key"
    raise _MESSAGES.refusal(message, where, host, file=file)


def _time_and_name(
    file: str, leaf: x509.Certificate, address: str, now: dt.datetime
) -> Iterator[Fault]:
    if now > leaf.not_valid_after_utc:
        ended = f"{leaf.not_valid_after_utc:%Y-%m-%d}"
        yield "certificate", f"{file} expired on {ended}", "renew the certificate"
    if now < leaf.not_valid_before_utc:
        begins = f"{leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        yield (
            "certificate",
            f"{file} is valid from {begins} on",
            "wait, or set this machine's clock",
        )
    names = subject_names(leaf)
    if not covers(names, address):
        choices = ", ".join(names) or "no name (subjectAltName)"
        facts = {"file": file, "names": choices, "address": address}
        yield _MESSAGES.fault("another-name", "certificate", **facts)


def _signed(
    settings: TlsSettings, chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]
) -> Iterator[Fault]:
    """Yield a fault for the first certificate that the next certificate did not sign, and a fault
    if the CA did not sign the last certificate.
    """
    for item, signer in pairwise(chain):
        if not _by(item, signer):
            subject = item.subject.rfc4514_string() or "the first"
            facts = {"file": settings.certificate, "subject": subject}
            yield _MESSAGES.fault("broken-chain", "certificate", **facts)
            return
    last = chain[-1]
    if roots and not any(last == root or _by(last, root) for root in roots):
        yield _MESSAGES.fault("another-ca", "ca", file=settings.certificate, ca=settings.ca)
    if not roots and len(chain) == 1 and _by(last, last):
        yield _MESSAGES.fault("self-signed", "certificate", file=settings.certificate)


def _by(certificate: x509.Certificate, signer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
