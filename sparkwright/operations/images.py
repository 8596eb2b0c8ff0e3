"""Images on a host: a job on the host pulls them by digest, so that all hosts run the same bytes. A
job also builds images that no registry has, from a base pulled by digest.
"""

from collections.abc import Callable, Mapping, Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.answers import HostError
from sparkwright.facts.observation import observed
from sparkwright.host.fetch.request import (
    FetchFile,
    FetchRequest,
    ImageBuild,
    PullRequest,
    document,
)
from sparkwright.host.jobs import WatchedJob, credential
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.proof import ProofRequest
from sparkwright.operations import peers
from sparkwright.operations.lib import fetching, jobs, runtime
from sparkwright.operations.lib.changing import Commands, change, operation
from sparkwright.operations.lib.fetching import ACCOUNT, Sources, defaults
from sparkwright.resolve.references import hex_digits
from sparkwright.resolve.registry import ARCHITECTURES, PlatformImage, ask_registry

#: Directory for the state of `docker build`, since root's home is read-only for the job.
_BUILDX = "Environment=BUILDX_CONFIG=/tmp/buildx"


@operation()
def present(
    image: str,
    digest: str,
    *,
    registry: str | None = None,
    repository: str | None = None,
    platforms: Mapping[str, PlatformImage] | None = None,
    title: str | None = None,
    store: str | None = None,
    build: Callable[[], ImageBuild] | None = None,
    account: str | None = None,
    sources: Sources | None = None,
    wait: bool = True,
) -> Commands:
    """Pull an image into the host's Docker, by its digest.

    Args:
        image: name of the image on the host, ``host/path:tag``.
        digest: ``sha256:...`` of the manifest or index: a tag can move.
        registry: ``http(s)://host[:port]`` to pull from; default: the image's own host over https.
        repository: path within the registry; default: the image's own path.
        platforms: the image's files by architecture; with None, the controller queries the
            registry.
        title: name in messages; default: the image's name.
        store: directory for the image's parts; default: below ``<services_root>/images``.
        build: function that returns the context of an image that is built from this image.
        account: ``user:password`` for the registry, or None.
        sources: peers and limits; default: only the registry.
        wait: False only starts the job; ``jobs.finished`` waits for it.

    **Example:**

    .. code:: python

        from sparkwright.operations import images

        images.present(
            image="registry-1.docker.io/vllm/vllm-openai:v0.24.0",
            digest="sha256:251eba5cc7c12fed0b75da22a9240e582b1c9e39f6fbc064f86781b963bd814f",
        )
    """
    how = sources or defaults(ctx_host.get())
    origin, _, name = image.rpartition(":")[0].partition("/")
    registry, repository = registry or f"https://{origin}", repository or name
    content = digest.partition(":")[2]
    path = store or f"{how.services_root}/images/{content}"
    request = ObservationRequest(
        services_root=how.services_root, images=(image,), stores={path: content}
    )
    verb, subject = ("build" if build else "pull"), title or image

    def act(host: Host) -> Sequence[str]:
        every = platforms or ask_registry(registry, repository, digest, account).platforms
        platform = _platform(every, observed(host).architecture, subject)
        watched = watched_job(image, how.services_root)
        pull = PullRequest(
            name=image,
            # Pull the platform's manifest instead of the index: from 29.1 on, Docker also requests
            # the index's attestations, which hosts do not have (sonatype/nexus-public#1070).
            source=f"127.0.0.1:{how.peer_port}/{repository}@{platform.digest}",
            token_file=how.peer_keys.server_file,
            layers=tuple(hex_digits(layer) for layer, _ in platform.layers),
            keep=how.keep_parts(),
            build=build() if build else None,
            fetch=_request(
                platform, how, watched, account,
                registry=registry, repository=repository, content=content, path=path,
            ),
        )  # fmt: skip
        home = runtime.ensure(host, how.services_root, how.bundle)
        job = jobs.task(
            home, "pull", watched, document(pull),
            description=f"{verb} {image}",
            credentials=how.peer_credentials(host.name) | ({ACCOUNT: account} if account else {}),
            writable=(path.rpartition("/")[0], str(watched.state)),
            properties=(*how.properties, _BUILDX),
            program=home,
        )  # fmt: skip
        jobs.start(host, [peers.server_job(home, how), job], how.server_secrets(host.name))
        if not wait:
            return [f"{verb}ing {subject}"]
        return jobs.brought(host, {watched: subject}, ProofRequest(images=(image,)), [subject])

    there = observed(ctx_host.get(), request).images.get(image, False)
    todo = [] if there else [f"{verb} {subject}"]
    yield from change(todo, act, otherwise=f"{subject} is on the host", forget=wait)


def _request(
    platform: PlatformImage, how: Sources, watched: WatchedJob, account: str | None, *,
    registry: str, repository: str, content: str, path: str,
) -> FetchRequest:  # fmt: skip
    return FetchRequest(
        source="registry",
        endpoint=registry.rstrip("/"),
        repo=repository,
        revision=content,
        destination=path,
        files=tuple(FetchFile(name, size, name) for name, size in platform.files.items()),
        manifests=tuple(map(hex_digits, platform.manifests)),
        downloader="http",
        token_file=credential(watched.unit, ACCOUNT) if account else None,
        **how.request(watched),
    )


def _platform(
    platforms: Mapping[str, PlatformImage], architecture: str, title: str
) -> PlatformImage:
    platform_image = platforms.get(ARCHITECTURES.get(architecture, architecture))
    if platform_image is None:
        there = ", ".join(platforms)
        raise HostError(f"{title}: the image has no platform for {architecture}, only {there}")
    return platform_image


def watched_job(image: str, services_root: str) -> WatchedJob:
    """The job that pulls or builds an image."""
    return fetching.watched_job("pull", image, services_root)
