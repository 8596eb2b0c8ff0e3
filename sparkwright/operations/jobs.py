"""Wait for the jobs of a fetch, and prove that the files are complete."""

from collections.abc import Mapping, Sequence

from pyinfra.api.host import Host

from sparkwright.host.jobs import WatchedJob
from sparkwright.host.proof import ProofRequest
from sparkwright.operations.lib.changing import Commands, change, operation
from sparkwright.operations.lib.jobs import brought


@operation()
def finished(jobs: Mapping[WatchedJob, str], proved: ProofRequest) -> Commands:
    """Wait until jobs have ended, then prove that their files exist.

    Args:
        jobs: job -> its name in messages; empty if no file is missing.
        proved: models and images to check afterwards.

    **Example:**

    .. code:: python

        from sparkwright.operations import ModelAt, ProofRequest, jobs

        jobs.finished(jobs={}, proved=ProofRequest(models=(ModelAt("/opt/models/m", "c" * 40),)))
    """

    def act(host: Host) -> Sequence[str]:
        return brought(host, jobs, proved, list(jobs.values()))

    yield from change(
        [f"wait for {name}" for name in jobs.values()],
        act, otherwise="all files are on the disk and verified",
    )  # fmt: skip
