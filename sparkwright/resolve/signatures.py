"""Signatures of images, as cosign makes them with a key: verified by the site's own copy of it.

cosign signs a small document (simple signing) that has the image's digest. The lock keeps document
and signature, so that every later run verifies them again, without a registry.
"""

from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, StringConstraints
from pydantic.dataclasses import dataclass

from sparkwright.documents import json_text, text_files
from sparkwright.documents.bounds import Unusable
from sparkwright.resolve.messages import MESSAGES

#: Bytes of a document or a key.
LARGEST = 16 << 10
_TYPE = "cosign container image signature"
_Base64 = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]+=*$", max_length=2 * LARGEST)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Signature:
    """The signed document and its signature, in base64."""

    payload: _Base64
    signature: _Base64

    def holds(self, digest: str, key: str) -> bool:
        """Whether it is by a key, and for the image of this digest. Raises as ``verifier``."""
        from cryptography.exceptions import InvalidSignature

        verify, payload = verifier(key), self.payload
        try:
            verify(b64decode(self.signature), b64decode(payload))
            critical = json_text.load_object(b64decode(payload))["critical"]
            signed = critical["type"], critical["image"]["docker-manifest-digest"]
        except (InvalidSignature, Unusable, LookupError, TypeError, ValueError):
            return False
        return signed == (_TYPE, digest)


def verifier(file: str) -> Callable[[bytes, bytes], None]:
    """Return the check of a signature and its data by the public key of a file on the controller.

    Raises:
        UserError: for a file without such a key: ECDSA on P-256 or Ed25519, in PEM.
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # 40 ms, where a key is named
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    problem = "it holds no public key of ECDSA on P-256 or Ed25519, in PEM"
    try:
        key = load_pem_public_key(text_files.read_bytes(Path(file), LARGEST))
        if isinstance(key, ed25519.Ed25519PublicKey):
            return key.verify
        if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
            return lambda signature, data: key.verify(signature, data, ec.ECDSA(SHA256()))
    except Unusable as error:
        problem = error.what
    except (ValueError, UnsupportedAlgorithm):
        pass
    raise MESSAGES.refusal("no-public-key", f"image_keys: {file}", problem=problem)
