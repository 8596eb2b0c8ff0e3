"""Images are deployed only with the signature of the site's key; each registry has its account."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sparkwright.findings.user_error import UserError
from sparkwright.resolve.credentials import account
from sparkwright.resolve.lock import from_resolution, render_lock, resolve
from sparkwright.resolve.references import ImageReference, References
from sparkwright.resolve.registry import ResolvedImage, Signature, ask_registry, verifier
from tests.host.serving import Handler, listening
from tests.tables import Tables
from tests.unit.builders import DIGEST, SPARK, plan, resolution
from tests.unit.cli.answering import run

cases = Tables(__file__)

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def b64(content: bytes) -> str:
    """Encode as base64."""
    return base64.b64encode(content).decode()


def sha(content: bytes) -> str:
    """Digest of a content, as ``sha256:...``."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def signed(key: Key, payload: bytes) -> bytes:
    """Sign a payload with the key."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(payload)
    return key.sign(payload, ec.ECDSA(SHA256()))


def document(digest: str, kind: str = "cosign container image signature", size: int = 0) -> bytes:
    """The payload that cosign signs."""
    critical = {"identity": {"docker-reference": "x"}, "type": kind,
                "image": {"docker-manifest-digest": digest}}  # fmt: skip
    return json.dumps({"critical": critical, "optional": {"x": "y" * size}}).encode()


class Registry(Handler):
    """An image, and its signatures in the registry."""

    content: dict[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.content.get(self.path.removeprefix("/v2/org/image/"))
        self.reply(404 if body is None else 200, body or b"")

    @staticmethod
    def sign(content: dict[str, bytes], name: str, *pairs: tuple[bytes, bytes]) -> str:
        """Push documents and their signatures as one manifest."""
        layers = []
        for payload, signature in pairs:
            content[f"blobs/{sha(payload)}"] = payload
            annotations = {"dev.cosignproject.cosign/signature": b64(signature)}
            layers.append({"digest": sha(payload), "size": 1, "annotations": annotations})
        manifest = json.dumps({"mediaType": _MANIFEST, "layers": layers}).encode()
        content[f"manifests/{name or sha(manifest)}"] = manifest
        return sha(manifest)


@pytest.fixture
def content() -> dict[str, bytes]:
    """A registry's content with one unsigned image."""
    config = b'{"architecture": "arm64"}'
    entry = {"digest": sha(config), "size": len(config)}
    image = json.dumps({"config": entry, "layers": [entry]}).encode()
    return {"manifests/tag": image, f"blobs/{sha(config)}": config}


@pytest.fixture
def digest(content: dict[str, bytes]) -> str:
    """Digest of the image."""
    return sha(content["manifests/tag"])


def public(key: Any, folder: Path) -> str:
    """Write a public key as cosign.pub, and return its path."""
    file = folder / "cosign.pub"
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.write_bytes(pem)
    return str(file)


@pytest.fixture(params=["p256", "ed25519"])
def key(request: pytest.FixtureRequest) -> Key:
    """The publisher's private key, of each supported kind."""
    if request.param == "p256":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def asked(content: dict[str, bytes], file: str | None) -> ResolvedImage:
    """An image from a registry with this content."""
    with listening(Registry, content=content, asked=[]) as port:
        url = f"http://127.0.0.1:{port}"
        image = ImageReference("x", "x/y:tag", url, "org/image", "x", "tag", key=file)
        return resolve([References((image,), (), "")], None).images["x/y:tag"]


def test_the_publishers_signature_is_kept(
    content: dict[str, bytes], digest: str, key: Key, tmp_path: Path
) -> None:
    payload = document(digest)
    Registry.sign(content, f"{digest.replace(':', '-')}.sig", (payload, signed(key, payload)))
    assert asked(content, public(key, tmp_path)).is_signed(public(key, tmp_path))
    assert asked(content, None).signature is None


def test_a_signature_is_found_among_many_referrers(
    content: dict[str, bytes], digest: str, key: Key, tmp_path: Path
) -> None:
    stranger, payload = ed25519.Ed25519PrivateKey.generate(), document(digest)
    names = []
    for number in range(20):
        other = document(digest, size=number + 1)
        names.append(Registry.sign(content, "", (other, signed(stranger, other))))
    names.append(Registry.sign(content, "", (payload, signed(key, payload))))
    content[f"referrers/{digest}"] = json.dumps(
        {"manifests": [{"digest": n} for n in names]}
    ).encode()
    assert asked(content, public(key, tmp_path)).signature
    # The search ends, however many referrers the registry lists.
    content[f"referrers/{digest}"] = json.dumps(
        {"manifests": [{"digest": name} for name in names[:20] * 500]}
    ).encode()
    with pytest.raises(UserError, match="x/y:tag has no signature"):
        asked(content, public(key, tmp_path))


_OTHER = "sha256:" + "0" * 64
#: Objects in place of a right signature: another key's signature, another image's signature, and
#: the image's digest.
WRONG: dict[str, Callable[[Key, Key, str], Iterator[tuple[bytes, bytes]]]] = {
    "none": lambda *_: iter(()),
    "another key": lambda _, other, digest: iter(
        [(document(digest), signed(other, document(digest)))]
    ),
    "another image": lambda key, _, __: iter([(document(_OTHER), signed(key, document(_OTHER)))]),
    "a changed document": lambda key, _, digest: iter(
        [(document(digest), signed(key, document(_OTHER)))]
    ),
    "another kind": lambda key, _, digest: iter(
        [(document(digest, "attestation"), signed(key, document(digest, "attestation")))]
    ),
    "a large document": lambda key, _, digest: iter(
        [(document(digest, size=30_000), signed(key, document(digest, size=30_000)))]
    ),
    "no JSON": lambda key, _, __: iter([(b"[[[", signed(key, b"[[["))]),
    "no base64": lambda _, __, digest: iter([(document(digest), b"")]),
}


@pytest.mark.parametrize("attack", WRONG)
def test_an_image_without_the_right_signature_is_refused(
    attack: str, content: dict[str, bytes], digest: str, key: Key, tmp_path: Path
) -> None:
    pairs = WRONG[attack](key, ed25519.Ed25519PrivateKey.generate(), digest)
    Registry.sign(content, f"{digest.replace(':', '-')}.sig", *pairs)
    with pytest.raises(UserError, match=r"has no signature|does not answer with"):
        asked(content, public(key, tmp_path))


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        with pytest.raises(UserError, match="no public key"):
            verifier(public(other, tmp_path))
    with pytest.raises(UserError, match="can't be read"):
        verifier(str(tmp_path / "none"))


@cases("digest", "payload", "signature", "pem")
def test_a_signature_by_cosign_is_accepted(
    digest: str, payload: str, signature: str, pem: str, tmp_path: Path
) -> None:
    """A change of any byte of the signature is refused."""
    file = tmp_path / "cosign.pub"
    file.write_text(pem)
    right = Signature(payload, signature)
    assert right.holds(digest, str(file))
    assert not right.holds(_OTHER, str(file))
    document = base64.b64decode(payload).replace(digest.encode(), _OTHER.encode())
    assert not replace(right, payload=b64(document)).holds(_OTHER, str(file))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_host_without_a_key_uses_no_other_hosts_key(
    order: tuple[int, int], content: dict[str, bytes], key: Key, tmp_path: Path
) -> None:
    with listening(Registry, content=content, asked=[]) as port:
        image = ImageReference("x", "x/y:tag", f"http://127.0.0.1:{port}", "org/image", "x", "tag")
        images = replace(image, key=public(key, tmp_path)), image
        with pytest.raises(UserError, match="x/y:tag has no signature"):
            resolve([References((images[number],), (), "") for number in order], None)


def test_plan_refuses_a_lock_without_the_signature(key: Key, tmp_path: Path) -> None:
    """An attacker who changes a lock can't make a signature, or use a signature of another
    image.
    """
    file, inventory = tmp_path / "fleet.lock", tmp_path / "inventory.py"
    keys = {"ghcr.io/aeon-7/*": public(key, tmp_path)}
    data = {"services": SPARK, "image_keys": keys, "lock_file": str(file)}
    inventory.write_text(f"sparks = [('spark-1', {data!r})]\n")
    host = plan(SPARK)
    (name,) = resolution(host).images
    digest = resolution(host).images[name].digest
    right = {"payload": b64(document(digest)), "signature": b64(signed(key, document(digest)))}

    def planned(digest: str, signature: dict[str, str] | None) -> str:
        lock = yaml.safe_load(
            render_lock(from_resolution([host.references], resolution(host), None))
        )
        lock["images"][name] |= {"digest": digest, "signature": signature}
        file.write_text(yaml.safe_dump(lock))
        result = run("plan", str(inventory))
        assert result.exit_code == (0 if (digest, signature) == (DIGEST, right) else 2), (
            result.output
        )
        return result.output

    assert f"signed by {tmp_path}/cosign.pub" in planned(digest, right)
    for faults in ((_OTHER, right), (digest, None), (digest, right | {"signature": "AAAA"})):
        assert f"{name} has no signature by the key" in planned(*faults)


def file(folder: Path, data: Any) -> str:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def entry(secret: str) -> dict[str, str]:
    return {"auth": base64.b64encode(secret.encode()).decode()}


def test_each_registry_gets_only_its_own_account(tmp_path: Path) -> None:
    accounts = {"ghcr.io": entry("me:one"), "https://index.docker.io/v1/": entry("me:two")}
    path = file(tmp_path, {"auths": accounts})
    assert account(path, "https://ghcr.io") == "me:one"
    assert account(path, "https://registry-1.docker.io") == "me:two"
    assert account(path, "https://quay.io") is None
    assert account(None, "https://ghcr.io") is None


class Private(Handler):
    """A registry with one image for ``me:secret``, by Basic authentication or by a token."""

    scheme: str

    def do_GET(self) -> None:
        basic = f"Basic {base64.b64encode(b'me:secret').decode()}"
        given = self.headers.get("Authorization")
        if self.path == "/token?a=b&service=x&scope=y":
            self.reply(200 if given == basic else 401, b'{"access_token": "t"}')
        elif given != (basic if self.scheme == "Basic" else "Bearer t"):
            realm = f"http://{self.headers['Host']}/token?a=b"
            challenge = f'{self.scheme} realm="{realm}",service="x",scope="y"'
            self.reply(401, b"", {"WWW-Authenticate": challenge})
        else:
            self.reply(200, b'{"manifests": []}')


@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
def test_an_account_gives_access_to_a_private_image(scheme: str) -> None:
    with listening(Private, scheme=scheme) as port:
        url = f"http://127.0.0.1:{port}"
        assert ask_registry(url, "me/image", "tag", "me:secret").platforms == {}
        with pytest.raises(UserError, match="account with access to this repository"):
            ask_registry(url, "me/image", "tag", "me:wrong")
        with pytest.raises(UserError, match="docker login"):
            ask_registry(url, "me/image", "tag")


@cases("data", "message")
def test_an_unusable_file_of_accounts_is_reported(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        account(file(tmp_path, data), "https://ghcr.io")


def test_a_missing_file_and_an_unencrypted_registry_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        account(str(tmp_path / "none"), "https://ghcr.io")
    path = file(tmp_path, {"auths": {"10.0.0.5:5000": entry("me:secret")}})
    with pytest.raises(UserError, match="unencrypted") as raised:
        account(path, "http://10.0.0.5:5000")
    assert "secret" not in str(raised.value)
