"""``sparkwright ca``: the site's CA, for clients to import."""

import hashlib
import ssl

import click

from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import MESSAGES, echo
from sparkwright.config.tls import CA


@click.command("ca")
@json_option
def command(as_json: bool) -> None:
    """Print the certificate of the site's own CA, for clients to import.

    With `tls = "own"`, the first deploy makes the CA. The fingerprint goes to standard error:
    compare it after you have copied the certificate over a network. The CA's private key is never
    printed. No host is contacted.
    """
    try:
        pem = CA.read_text(encoding="utf-8")
        fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    except (OSError, ValueError):
        raise MESSAGES.refusal("no-ca", str(CA)) from None
    pairs = ":".join(fingerprint[at : at + 2] for at in range(0, len(fingerprint), 2))
    if as_json:
        print_json({"certificate": pem, "sha256": pairs})
        return
    click.echo(pem, nl=False)
    echo(f"SHA-256 fingerprint: {pairs}", err=True)
