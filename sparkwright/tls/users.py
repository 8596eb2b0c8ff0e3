"""A certificate of the user's own: read, and judged before any host is touched."""

from __future__ import annotations

import datetime as dt
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from sparkwright.config.secrets import SecretText
from sparkwright.config.settings import TlsSettings
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.tls.authority import pem, subject_names
from sparkwright.tls.names import covers

#: Key of the settings, what is wrong, what to do.
_Fault = tuple[str, str, str]


class _Unusable(Exception):
    """A file can't be used; carries the fault."""


@dataclass(frozen=True)
class UserCertificate:
    """A certificate with its key, PEM; the names that it is for, and its CA where one is named."""

    pem: SecretText
    names: tuple[str, ...]
    ca: str | None


def user_certificate(
    settings: TlsSettings, host: str, address: str, where: str, now: dt.datetime
) -> UserCertificate:
    """The user's certificate for a host.

    Args:
        address: what clients and other hosts connect to; the certificate must be for it.
        where: file and key of the setting, for messages.

    Raises:
        UserError: everything that is wrong with it.
    """
    faults: list[_Fault] = []
    chain: tuple[x509.Certificate, ...] = ()
    roots: tuple[x509.Certificate, ...] = ()
    key: PrivateKeyTypes | None = None
    try:
        chain = _certificates(Path(settings.certificate), "certificate")
    except _Unusable as error:
        faults.append(error.args[0])
    try:
        roots = _certificates(Path(settings.ca), "ca") if settings.ca else ()
    except _Unusable as error:
        faults.append(error.args[0])
    try:
        key = _key(Path(settings.key))
    except _Unusable as error:
        faults.append(error.args[0])
    if chain:
        faults += _time_and_name(settings.certificate, chain[0], address, now)
        if not faults:
            faults += _signed(settings, chain, roots)
        if key is not None and key.public_key() != chain[0].public_key():
            faults.append(
                (
                    "key",
                    f"{settings.key} is not the key of {settings.certificate}",
                    "name the key that this certificate was made for; the host's certificate "
                    "comes first in its file",
                )
            )
    if faults or key is None:
        raise UserError(
            mistake(f"{where}.{setting}", what, remedy, host) for setting, what, remedy in faults
        )
    return UserCertificate(
        SecretText(pem(*chain, key)), subject_names(chain[0]), pem(*roots) or None
    )


def _read(path: Path, key: str) -> bytes:
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise _Unusable(
            (key, f"{path} can't be read: {error.strerror}", "name a file on this machine, in PEM")
        ) from None


def _certificates(path: Path, key: str) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(_read(path, key)))
    except ValueError:
        raise _Unusable(
            (
                key,
                f"{path} holds no certificate in PEM",
                "name a file with -----BEGIN CERTIFICATE----- in it",
            )
        ) from None


def _key(path: Path) -> PrivateKeyTypes:
    text = _read(path, "key")
    mode = stat.S_IMODE(path.expanduser().stat().st_mode)
    if mode & 0o077:
        what = f"others may read the private key {path} (mode {mode:o})"
        raise _Unusable(("key", what, f"chmod 600 {path}"))
    try:
        return serialization.load_pem_private_key(text, None)
    except TypeError:
        remedy = "write it without one: openssl pkey -in KEY -out NEW, and chmod 600 NEW"
        raise _Unusable(("key", f"{path} has a passphrase, which no host knows", remedy)) from None
    except ValueError:
        remedy = "name a file with -----BEGIN PRIVATE KEY----- in it"
        raise _Unusable(("key", f"{path} holds no private key in PEM", remedy)) from None


def _time_and_name(
    file: str, leaf: x509.Certificate, address: str, now: dt.datetime
) -> Iterator[_Fault]:
    if now > leaf.not_valid_after_utc:
        ended = f"{leaf.not_valid_after_utc:%Y-%m-%d}"
        yield "certificate", f"{file} expired on {ended}", "renew it"
    if now < leaf.not_valid_before_utc:
        begins = f"{leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        yield "certificate", f"{file} is valid from {begins} on", "wait, or set this clock right"
    names = subject_names(leaf)
    if not covers(names, address):
        known = ", ".join(names) or "no name (subjectAltName)"
        yield (
            "certificate",
            f"{file} is for {known}, and clients connect to {address}",
            f"have {address} added to it, or set lan_address to one of its names",
        )


def _signed(
    settings: TlsSettings, chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]
) -> Iterator[_Fault]:
    """Whether each certificate leads to the next one, and the last to the CA."""
    for one, signer in pairwise(chain):
        if not _by(one, signer):
            yield (
                "certificate",
                f"{settings.certificate}: {one.subject.rfc4514_string() or 'the first'} is not "
                "signed by the certificate after it",
                "put the host's certificate first, then the one that signed it, and so on",
            )
            return
    last = chain[-1]
    if roots and not any(last == root or _by(last, root) for root in roots):
        what = f"{settings.certificate} is not signed by {settings.ca}"
        yield "ca", what, "name the CA that signed it, and put what lies between into certificate"
    if not roots and len(chain) == 1 and _by(last, last):
        what = f"{settings.certificate} is signed by itself, so that nobody can verify it"
        yield "certificate", what, f'add "ca": "{settings.certificate}", or set tls = "own"'


def _by(one: x509.Certificate, signer: x509.Certificate) -> bool:
    try:
        one.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
