"""Check the requirements of a service before a deploy touches it. The program runs on the host as
root.
"""

from pathlib import Path

from sparkwright.host.lib import docker, documents, files, receipt, records


@records.dataclass(frozen=True)
class ModelAt:
    """A model's directory and its required commit."""

    directory: str
    commit: str


@records.dataclass(frozen=True)
class Versions:
    """Versions on which a GPU proof depends: if any of them changes, the GPU needs a new proof."""

    driver: str
    docker: str
    toolkit: str


@records.dataclass(frozen=True)
class ProofRequest:
    """Request for a proof. The answer lists problems as lines.

    Attributes:
        images: names of images that Docker must have.
        gpu_images: images whose containers must see the GPU.
        record, versions: file of GPU proofs, and the versions to record in it.
    """

    models: tuple[ModelAt, ...] = ()
    images: tuple[str, ...] = ()
    gpu_images: tuple[str, ...] = ()
    record: str = ""
    versions: Versions | None = None


#: The proof has as few privileges as the service itself will have.
_LIST = (
    *("run", "--rm", "--gpus", "all", "--network", "none", "--entrypoint", "nvidia-smi"),
    *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
)


def main(request: ProofRequest) -> tuple[str, ...]:
    """List the problems as lines. If every image sees the GPU, record the proof."""
    problems = [
        f"{model.directory} {fault}"
        for model in request.models
        if (fault := receipt.check(model.directory, model.commit))
    ]
    problems += [
        f"{image} is missing after the pull"
        for image in request.images
        if docker.image(image, timeout=None) is None
    ]
    for image in request.gpu_images:
        done = docker.docker(*_LIST, image, "-L", timeout=120)
        if done.code is None and done.installed:
            problems.append("a container that requests the GPU hangs: reboot the host")
        elif not done.ok or "GPU 0" not in done.out:
            problems.append(f"a container does not see the GPU: {done.message or 'no message'}")
    if request.gpu_images and not problems:
        # Keep earlier proofs, so that a rollback needs no new proof.
        path, versions = Path(request.record), request.versions
        before = documents.record(dict[str, Versions], path) or {}
        proved = [image for image in before if before[image] == versions]
        files.write_record(path, dict.fromkeys([*proved, *request.gpu_images], versions))
    return tuple(problems)
