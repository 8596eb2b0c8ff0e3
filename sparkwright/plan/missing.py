"""Parts of the desired state that a host lacks, according to its observation."""

import hashlib

from sparkwright.host.observe import FileState, Observation
from sparkwright.plan.desired import Desired, DesiredImage, DesiredModel


def missing_models(desired: Desired, observed: Observation) -> list[DesiredModel]:
    """Return models that are missing or differ from their receipts."""
    return [
        model
        for model in desired.models
        if observed.models.get(model.directory, "not asked") is not None
    ]


def missing_images(desired: Desired, observed: Observation) -> list[DesiredImage]:
    """Images that Docker does not have."""
    return [image for image in desired.images if not observed.images.get(image.name, False)]


def shared(desired: Desired, observed: Observation) -> dict[str, bool]:
    """Models and images, by shared name, that the host can fetch from other hosts (True) or serve
    (False).

    An image can be served only while its parts are kept, since Docker keeps only the unpacked
    image.
    """
    result: dict[str, bool] = {}
    missing = {model.directory for model in missing_models(desired, observed)}
    for model in desired.models:
        result[model.shared_name] = model.directory in missing
    lacking = {image.name for image in missing_images(desired, observed)}
    for image in desired.images:
        if image.name in lacking:
            result[image.shared_name(observed.architecture)] = True
        elif image.store in observed.stores:
            result[image.shared_name(observed.architecture)] = False
    return result


def digest(text: str) -> str:
    """sha256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def differs(state: FileState | None, text: str, mode: int) -> bool:
    """Return whether a file is missing, or has another text or mode."""
    return state is None or (state.sha256, state.mode) != (digest(text), mode)
