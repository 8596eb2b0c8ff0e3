"""Push to a registry over its HTTP API: existing blobs are not sent again."""

import hashlib
import http.client
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlencode, urlsplit

_SECONDS = 60


class Registry:
    """A repository of a registry at `http://HOST[:PORT]`."""

    def __init__(self, address: str, repository: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SystemExit(f"registry {address!r}: write it as http://HOST:PORT")
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._address = address
        self._connection = kind(parts.hostname, parts.port, timeout=_SECONDS)
        self._base = f"/v2/{repository}"

    def has_manifest(self, reference: str, digest: str, accept: str) -> bool:
        """Return whether a tag (or digest) refers to exactly this manifest."""
        status, headers = self._ask("HEAD", f"/manifests/{reference}", {"Accept": accept})
        return status == 200 and headers.get("docker-content-digest") == digest

    def put_blob(
        self, digest: str, size: int, content: Path | bytes, *, mount_from: str | None = None
    ) -> bool:
        """Send a blob unless the registry or ``mount_from`` has it; return whether it was sent."""
        status, _ = self._ask("HEAD", f"/blobs/{digest}", {})
        if status == 200:
            return False
        mount = f"?{urlencode({'mount': digest, 'from': mount_from})}" if mount_from else ""
        status, headers = self._ask("POST", f"/blobs/uploads/{mount}", {"Content-Length": "0"})
        if mount and status == 201:
            return False
        self._must(status, 202, "start an upload")
        position = urlsplit(headers["location"])
        query = "&".join(filter(None, (position.query, urlencode({"digest": digest}))))
        described = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        if isinstance(content, bytes):
            status, _ = self._send("PUT", f"{position.path}?{query}", described, content)
        else:
            with content.open("rb") as file:
                status, _ = self._send("PUT", f"{position.path}?{query}", described, file)
        self._must(status, 201, f"upload {digest}")
        return True

    def put_manifest(self, reference: str, manifest: bytes, media_type: str) -> str:
        """Store a manifest under a tag or its digest; return the manifest's digest."""
        headers = {"Content-Type": media_type, "Content-Length": str(len(manifest))}
        path = f"{self._base}/manifests/{reference}"
        status, _ = self._send("PUT", path, headers, manifest)
        self._must(status, 201, f"store the manifest of {reference}")
        return "sha256:" + hashlib.sha256(manifest).hexdigest()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
        return self._send(method, self._base + path, headers, None)

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes | BinaryIO | None
    ) -> tuple[int, dict[str, str]]:
        try:
            self._connection.request(method, path, body=body, headers=headers)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise SystemExit(f"registry {self._address}: {method} {path}: {error}") from None
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def _must(self, status: int, wanted: int, reason: str) -> None:
        if status != wanted:
            raise SystemExit(
                f"registry {self._address}: could not {reason}: status {status} instead of {wanted}"
            )
