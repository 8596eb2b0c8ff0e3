"""Fetched: waits for the jobs of ``weights`` and ``image``, and proves their results."""

from pyinfra.api.host import Host

from sparkwright.host.proof import ModelAt, ProofRequest
from sparkwright.operations import gpu, images, jobs, models
from sparkwright.plan.missing import missing_images, missing_models
from sparkwright.run.state import HostRun, role


@role
def fetched(_: Host, host_run: HostRun) -> None:
    """Wait for image and weights, then prove both and the GPU inside a container."""
    settings, desired = host_run.settings, host_run.desired
    started = {
        models.watched_job(
            model.directory, settings.models_root, settings.services_root
        ): model.resolved.repository.rpartition("/")[2]
        for model in missing_models(desired, host_run.observed)
    }
    started |= {
        images.watched_job(image.name, settings.services_root): (f"image {image.planned.tag}")
        for image in missing_images(desired, host_run.observed)
    }
    jobs.finished(
        name="Image and weights: wait and verify",
        jobs=started,
        proved=ProofRequest(
            models=tuple(
                ModelAt(model.directory, model.resolved.commit) for model in desired.models
            ),
            images=tuple(image.name for image in desired.images),
        ),
    )
    gpu.seen_in_containers(
        name="GPU: check access from containers",
        images=sorted(
            {
                image.name
                for image in desired.images
                if image.planned not in desired.plan.page_images
            }
        ),
    )
