"""Models on a host: fetched by a separate job, verified, at one commit."""

from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.memory import MODELS_ROOT
from sparkwright.facts.observation import observed
from sparkwright.host.fetch.request import ExpectedContents, FetchFile, FetchRequest, document
from sparkwright.host.jobs import WatchedJob, credential
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.proof import ModelAt, ProofRequest
from sparkwright.operations.lib import fetching, jobs, runtime
from sparkwright.operations.lib.changing import Commands, change, operation
from sparkwright.operations.lib.fetching import HUB_TOKEN, Sources, defaults
from sparkwright.resolve.hub import directory_of, resolve_model
from sparkwright.resolve.pickles import is_pickle
from sparkwright.text.sizes import GIB


@operation()
def present(
    repository: str,
    commit: str,
    files: Sequence[FetchFile] | None = None,
    *,
    part: str = "",
    root: str = MODELS_ROOT,
    endpoint: str = "https://huggingface.co",
    expected: ExpectedContents | None = None,
    sources: Sources | None = None,
    pickles: bool = False,
    wait: bool = True,
) -> Commands:
    """Download a model's files: complete, verified, at this commit.

    The files are in ``<root>/<org>--<name>[--<part>]/<commit>``, with a receipt of sizes and
    hashes. A systemd job on the host fetches the files: the job continues if the connection ends,
    and resumes after an interruption.

    Args:
        repository: ``org/name`` of the hub.
        commit: 40 hex digits: a branch or tag can move.
        files: paths, sizes and hashes of the files; with None, the controller queries the hub.
        part: name of these files, if they are a part of a repository (GGUF).
        expected: format and checks that the files' headers and configurations must pass.
        sources: peers, token and limits; default: only the hub.
        pickles: whether to fetch even files that run code when they are loaded.
        wait: False only starts the job; ``jobs.finished`` waits for it.

    **Example:**

    .. code:: python

        from sparkwright.operations import models

        models.present(
            repository="Qwen/Qwen3-0.6B", commit="c1899de289a04d12100db370d81485cdf75e47ca"
        )
    """
    directory = f"{root}/{directory_of(repository, commit, part)}"
    how = sources or defaults(ctx_host.get())
    request = ObservationRequest(
        models_root=root, services_root=how.services_root, models=(ModelAt(directory, commit),)
    )
    fault = observed(ctx_host.get(), request).models.get(directory, "has not been inspected")
    named = f"{repository}@{commit[:12]}"
    size = f" ({sum(file.size for file in files) / GIB:.2f} GiB)" if files is not None else ""

    def act(host: Host) -> Sequence[str]:
        wanted = files
        if wanted is None:
            wanted = resolve_model(endpoint, repository, commit, None).to_fetch
        watched = watched_job(directory, root, how.services_root)
        fetch = FetchRequest(
            endpoint=endpoint.rstrip("/"),
            repo=repository,
            revision=commit,
            destination=directory,
            files=tuple(file for file in wanted if pickles or not is_pickle(file.path)),
            downloader=how.downloader,
            token_file=credential(watched.unit, HUB_TOKEN) if how.token else None,
            expect=expected or ExpectedContents(),
            adopt=how.adopt,
            **how.request(watched),
        )
        home = runtime.ensure(host, how.services_root, how.bundle)
        token = {HUB_TOKEN: how.token.value} if how.token else {}
        job = jobs.task(
            home, "run", watched, document(fetch),
            description=f"fetch {named}",
            credentials=token | how.peer_credentials(host.name),
            writable=(root, str(watched.state)),
            properties=how.properties,
        )  # fmt: skip
        jobs.start(host, [job])
        if not wait:
            return [f"fetching {named}"]
        proof = ProofRequest(models=(ModelAt(directory, commit),))
        return jobs.brought(host, {watched: repository.rpartition("/")[2]}, proof, [named])

    yield from change(
        [f"fetch {named}{size}: {directory} {fault}"] if fault is not None else [],
        act, otherwise=f"{named} is complete", forget=wait,
    )  # fmt: skip


def watched_job(directory: str, root: str, services_root: str) -> WatchedJob:
    """The job that fetches into a directory."""
    return fetching.watched_job("fetch", directory.removeprefix(f"{root}/"), services_root)
