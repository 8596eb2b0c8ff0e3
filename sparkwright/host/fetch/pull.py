"""Gets an image into Docker: its blobs by the same fetch as models, then Docker from this host.

So an image is resumed, limited, shared between hosts and followed by bytes like everything else,
and Docker, who pulls from share.py on this host while the blobs arrive, still checks and unpacks.
The image gets a name of its own, made of its digest: where it came from does not matter later.

Request: {"name": what to call it, "source": "127.0.0.1:<port>/<path>@sha256:<hex>", "token_file",
"layers": [hex, ...] in order, "fetch": a request of request.py, "keep": whether the blobs stay for
other hosts, "build": null or {"base_name", "files": {path: [base64, executable]}}}
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparkwright.host.fetch.errors import FAILED, OK, Failed
from sparkwright.host.fetch.progress import NAME, log

_SOCKET = "/var/run/docker.sock"
_TRIES = 3


class _Docker(http.client.HTTPConnection):
    """Docker's API over its socket."""

    def __init__(self) -> None:
        super().__init__("docker")

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(_SOCKET)


def _call(method: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    docker = _Docker()
    try:
        docker.request(method, path, headers=headers or {})
        answer = docker.getresponse()
        text = answer.read()
    except OSError as error:
        raise Failed(f"Docker does not answer: {error.strerror or error}.") from error
    finally:
        docker.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, None


def known_layers(layers: list[str]) -> set[str]:
    """Layers that Docker has unpacked already, so that it will not ask for them."""
    _, info = _call("GET", "/info")
    root, driver = Path(info["DockerRootDir"]), info["Driver"]
    content = Path("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256")
    if not (root / "image" / driver).is_dir():  # Docker on containerd's store
        return {layer for layer in layers if (content / layer).is_file()}
    known: set[str] = set()
    chain = ""
    for layer in layers:
        place = root / "image" / driver / "distribution/diffid-by-digest/sha256" / layer
        try:
            diff = place.read_text().strip()
        except OSError:
            break
        chain = diff if not chain else _sha256(f"{chain} {diff}")
        if not (root / "image" / driver / "layerdb/sha256" / chain[7:]).is_dir():
            break
        known.add(layer)
    return known


def _sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class _Pull:
    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._state = Path(request["fetch"]["state_dir"])
        self._destination = Path(request["fetch"]["destination"])

    def run(self) -> str:
        """Return the message of success; raise Failed otherwise."""
        known = known_layers(self._request["layers"])
        fetch = self._request["fetch"]
        fetch["files"] = [file for file in fetch["files"] if file["path"] not in known]
        if known:
            log(f"{len(known)} of {len(self._request['layers'])} layers are in Docker already")
        document = self._state / "fetch.json"
        document.write_text(json.dumps(fetch), encoding="utf-8")
        program = Path(__file__).with_name("fetch.py")
        child = subprocess.Popen([sys.executable, "-I", "-S", str(program), str(document)])
        try:
            error = self._into_docker(child)
            if child.wait() != OK:
                raise Failed(self._said() or "the image was not fetched")
            if error is not None:
                raise Failed(f"Docker refuses the image: {error}")
        finally:
            child.kill()
            child.wait()
        self._name()
        if not self._request["keep"]:
            shutil.rmtree(self._destination, ignore_errors=True)
        return self._said() or "done"

    def _into_docker(self, child: subprocess.Popen[bytes]) -> str | None:
        """Have Docker pull from this host. Returns what it refuses, None when all is well."""
        repository, _, digest = self._request["source"].partition("@")
        token = Path(self._request["token_file"]).read_text().strip()
        account = {"username": "sparkwright", "password": token}
        header = base64.urlsafe_b64encode(json.dumps(account).encode()).decode()
        error: str | None = None
        for _ in range(_TRIES):
            error = self._create(
                f"/images/create?fromImage={quote(repository, safe='')}&tag={digest}", header
            )
            if error is None or child.poll() not in (None, OK):
                return error
            time.sleep(1)
        return error

    def _create(self, path: str, account: str) -> str | None:
        docker = _Docker()
        try:
            docker.request("POST", path, headers={"X-Registry-Auth": account})
            answer = docker.getresponse()
            if answer.status != 200:
                return str(json.loads(answer.read() or b"{}").get("message", answer.status))
            for line in answer:
                said = json.loads(line) if line.strip() else {}
                if "error" in said:
                    return str(said["error"])
        except OSError as error:
            return f"it does not answer ({error.strerror or error})"
        except ValueError:
            return "its answer makes no sense"
        finally:
            docker.close()
        return None

    def _name(self) -> None:
        """Give the image its name, and take away the one that it was pulled by."""
        source, build = self._request["source"], self._request["build"]
        name = build["base_name"] if build else self._request["name"]
        repository, _, tag = name.rpartition(":")
        _tag(source, repository, tag)
        if build:
            self._progress("building")
            _build(self._request["name"], build["files"])
        _call("DELETE", f"/images/{source}?noprune=1")

    def _said(self) -> str:
        try:
            said = json.loads((self._state / NAME).read_text())["message"]
        except (OSError, ValueError, KeyError):
            return ""
        return str(said)

    def _progress(self, state: str, message: str = "") -> None:
        place = self._state / NAME
        try:
            known = json.loads(place.read_text())
        except (OSError, ValueError):
            known = {}
        temporary = place.with_name(f".{NAME}.pull")
        temporary.write_text(json.dumps({**known, "state": state, "message": message}))
        temporary.replace(place)

    def end(self, state: str, message: str) -> None:
        """Write the last state."""
        self._progress(state, message)


def _tag(source: str, repository: str, tag: str) -> None:
    status, said = _call(
        "POST", f"/images/{source}/tag?repo={quote(repository, safe='')}&tag={quote(tag)}"
    )
    if status != 201:
        raise Failed(f"Docker can't name the image: {(said or {}).get('message', status)}.")


def _build(name: str, files: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="sparkwright-build-") as folder:
        for path, (content, executable) in files.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(base64.b64decode(content))
            place.chmod(0o755 if executable else 0o644)
        done = subprocess.run(
            ["docker", "build", "--tag", name, folder], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(f"docker build: {said[-1] if said else 'failed without a word'}")


def run(request_path: Path, _runtime: Path | None) -> int:
    """Do what the request says. Returns the exit code; the last line on stderr is the message."""
    pull = _Pull(json.loads(request_path.read_text(encoding="utf-8")))
    try:
        message, code = pull.run(), OK
    except Failed as error:
        message, code = str(error), error.exit_code
    except OSError as error:
        message, code = f"{error.filename or 'the disk'}: {error.strerror or error}.", FAILED
    pull.end("done" if code == OK else "failed", message)
    log(message)
    return code
