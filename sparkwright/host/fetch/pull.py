"""Get an image into Docker: its blobs are fetched like a model's files, then Docker pulls them.

Like a model's download, an image's download can therefore be resumed, limited and shared with
peers, and its progress is counted in bytes. Docker pulls from this host's peer server while the
blobs arrive, and still checks and unpacks them itself. The digest identifies the image, regardless
of its origin.
"""

import base64
import hashlib
import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from threading import Event

from sparkwright.host.fetch import job, messages, peer_auth, progress, request
from sparkwright.host.lib import docker, documents

_TRIES = 3
#: Docker arguments of a container without network, GPU or capabilities.
_CONTAINER = (
    *("run", "--rm", "--network", "none", "--runtime", "runc", "--read-only", "--tmpfs", "/tmp"),
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "0:0"),
    *("--pids-limit", "512", "--memory", "8g", "--env", "HOME=/tmp", "--entrypoint", "python3"),
)
#: The build context's directory in that container, and its time limit in seconds.
_CONTEXT, _SECONDS = "/run/sparkwright", 1200
#: Build arguments that Docker predefines.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


def known_layers(layers: tuple[str, ...]) -> set[str]:
    """Return the layers that Docker has already unpacked, which need no download."""
    if (info := docker.get("/info")) is None:
        raise messages.Failed("docker_silent")
    root, driver = Path(info["DockerRootDir"]), info["Driver"]
    if docker.in_containerd(info):
        blobs = Path(docker.store(info), "io.containerd.content.v1.content/blobs/sha256")
        return {layer for layer in layers if (blobs / layer).is_file()}
    in_docker: set[str] = set()
    chain = ""
    for layer in layers:
        path = root / "image" / driver / "distribution/diffid-by-digest/sha256" / layer
        if (diff := documents.text(path)) is None:
            break
        both = f"{chain} {diff.strip()}".encode()
        chain = f"sha256:{hashlib.sha256(both).hexdigest()}" if chain else diff.strip()
        if not (root / "image" / driver / "layerdb/sha256" / chain[7:]).is_dir():
            break
        in_docker.add(layer)
    return in_docker


def _pull(request: request.PullRequest, progress: progress.Progress, stop: Event) -> str:
    """Pull the image. Returns the success message; raises Failed on failure."""
    in_docker = known_layers(request.layers)
    if in_docker:
        messages.log(f"{len(in_docker)} of {len(request.layers)} layers are in Docker already")
    files = tuple(file for file in request.fetch.files if file.path not in in_docker)
    pulled = ThreadPoolExecutor(1).submit(_into_docker, request, stop)
    try:
        message = job.fetch(replace(request.fetch, files=files), progress, stop)
        progress.write()
        while not wait([pulled], timeout=0.5).done:
            messages.check(stop)
    finally:
        stop.set()
    if (error := pulled.result()) is not None:
        raise messages.Failed("docker_rejects", reason=error)
    _name(request, progress)
    if not request.keep:
        shutil.rmtree(request.fetch.destination, ignore_errors=True)
    return message


def _into_docker(request: request.PullRequest, stop: Event) -> str | None:
    """Have Docker pull from this host. Returns the reason for a failure, or None."""
    key = Path(request.token_file)
    account = f"{key.name}:{peer_auth.docker_password(key.read_text().strip())}"
    encoded = base64.b64encode(account.encode()).decode()
    auths = {request.source.partition("/")[0]: {"auth": encoded}}
    with tempfile.TemporaryDirectory(prefix="sparkwright-docker-") as folder:
        Path(folder, "config.json").write_text(json.dumps({"auths": auths}))
        for _ in range(_TRIES):
            pulled = docker.docker("--config", folder, "pull", "--quiet", request.source)
            if pulled.ok or stop.wait(1):
                break
    return None if pulled.ok else pulled.message


def _name(request: request.PullRequest, progress: progress.Progress) -> None:
    """Give the image its final name, and remove the name of the pull."""
    name = request.build.base_name if request.build else request.name
    tagged = docker.docker("tag", request.source, name)
    if not tagged.ok:
        raise messages.Failed("docker_name", reason=tagged.message)
    if request.build:
        progress.state = "building"
        progress.write()
        _build(request, request.build)
    docker.docker("image", "rm", "--no-prune", request.source)


def _build(request: request.PullRequest, build: request.ImageBuild) -> None:
    """Build an image. A patched image gets its name only after its checks have passed."""
    name = request.name.replace("/", "/unproven-", 1) if build.steps else request.name
    # Not in /tmp: the job has a private /tmp, and the container must see the directory.
    with tempfile.TemporaryDirectory(prefix="build-", dir=request.fetch.state_dir) as folder:
        Path(folder).chmod(0o755)
        for path, file in build.files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(base64.b64decode(file.content))
            target.chmod(0o755 if file.executable else 0o644)
        # Docker takes the value from the environment, so the image's history does not show it.
        passed = [word for name in _PROXIES if name in os.environ for word in ("--build-arg", name)]
        if build.steps:
            passed = ["--network", "none"]
            layer = _in_container(request.name, build.base_name, folder, "apply")
            Path(folder, "layer.tar").write_bytes(base64.b64decode(layer))
        built = docker.docker("build", *passed, "--tag", name, folder)
        if not built.ok:
            raise messages.Failed("docker_build", reason=built.message or "failed without output")
        if build.steps:
            try:
                _in_container(request.name, name, folder, "check")
                docker.docker("tag", name, request.name)
            finally:
                docker.docker("image", "rm", name)


def _in_container(name: str, image: str, folder: str, mode: str) -> str:
    """Run the build context's steps in a container of an image, and return the output."""
    mount = f"type=bind,source={folder},target={_CONTEXT},readonly"
    program = ("--mount", mount, image, "-B", f"{_CONTEXT}/steps.py", mode)
    done = docker.docker(*_CONTAINER, *program, timeout=_SECONDS)
    if not done.ok:
        raise messages.Failed("docker_steps", name=name.partition(":")[0], reason=done.message)
    return done.out


def run(path: Path, _runtime: Path | None) -> int:
    """Carry out the request. Returns the exit code."""
    return job.carry_out(path, request.PullRequest, _pull)
