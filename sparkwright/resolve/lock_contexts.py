"""Build contexts in the lock: what the images that no registry has are built from, by its hash."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.resolve import build_context
from sparkwright.resolve.lock import Lock
from sparkwright.resolve.references import References


def with_contexts(named: Iterable[References], lock: Lock, cache: Path) -> Lock:
    """The lock with the hash of every build context; what lacks one is fetched by git.

    Raises:
        UserError: for every context that can't be had.
    """
    images = dict(lock.images)
    problems: list[Finding] = []
    for image in (image for one in named for image in one.images):
        locked = images[image.name]
        if image.build is None or locked.commit is None or locked.context is not None:
            continue
        build = image.build
        try:
            files = build_context.build_context(
                build.context, locked.commit, build.directory, cache
            )
        except build_context.BuildContextError as error:
            problems.append(mistake(image.name, str(error), "try again"))
            continue
        found = build_context.digest(files)
        images[image.name] = locked.model_copy(update={"context": found})
    if problems:
        raise UserError(problems)
    return lock.model_copy(update={"images": images})


def without_contexts(named: Iterable[References], lock: Lock) -> list[str]:
    """Built images whose context the lock does not pin."""
    built = {image.name for one in named for image in one.images if image.build}
    return sorted(name for name in built & lock.images.keys() if not lock.images[name].context)
