"""Files of services: read, checked and tried on the controller before a host is changed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sparkwright.catalog import Catalog
from sparkwright.catalog.file_entries import File, overlap
from sparkwright.config import places
from sparkwright.documents.bounds import LONGEST
from sparkwright.engines import engine
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems
from sparkwright.plan.files import PlannedFile, source_of, trial
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.resolve import credentials, hub, pinned_text
from sparkwright.resolve.lock import Lock

_MESSAGES = Messages(__file__)
#: Largest number of bytes of a file, and of all files of a service: the request of a switch
#: contains these files.
_MOST, _MOST_TOGETHER = LONGEST, 4 * LONGEST
_Lock = Callable[[], Lock | None]


def with_files(
    plan: HostPlan, catalog: Catalog, origin: Callable[[str], str], lock: _Lock
) -> HostPlan:
    """The plan with the files of its services, read and tested.

    Args:
        lock: function that returns the host's lock, which takes precedence for files of
            repositories.

    Raises:
        UserError: names every fault of the files.
    """
    problems, services = Problems(), []
    for service in plan.services:
        own = f"{origin('services')}: services.{service.name}"
        recipe = catalog.writer(service.recipe.name, "files")
        problems += _unsourced(service, own)
        files: list[PlannedFile] = []
        named = [(file, f"{own}.files", None) for file in service.settings.files]
        replaced = {file.at for file in service.settings.files}
        listed: list[tuple[File, str, Path | None]] = [
            *((file, f"{recipe}: files", recipe) for file in service.recipe.files
              if file.at not in replaced),
            *named,
        ]  # fmt: skip
        for file, where, folder in listed:
            with problems.collected():
                files.append(_read(file, f"{where}.{file.at}", plan, folder, lock))
        problems += _misplaced(service, [(file, where) for file, where, _ in listed])
        if sum(len(file.content) for file in files) > _MOST_TOGETHER:
            problems.append(_MESSAGES.mistake("large-files", own, most=_MOST_TOGETHER))
        problems += _mistaken(service, files)
        services.append(replace(service, files=tuple(files)))
    problems.stop()
    return replace(plan, services=tuple(services))


def _unsourced(service: ServicePlan, own: str) -> Iterator[Finding]:
    """Secrets of a recipe that the service lacks, and duplicate names."""
    names = [secret.name for secret in service.settings.secrets]
    for name in service.recipe.secrets:
        if name not in names:
            facts = {"recipe": service.recipe.name, "name": name}
            yield _MESSAGES.mistake("no-secret-source", f"{own}.secrets", **facts)
    for name in {name for name in names if names.count(name) > 1}:
        yield _MESSAGES.mistake("same-secret", f"{own}.secrets", name=name)


def _misplaced(service: ServicePlan, listed: Sequence[tuple[File, str]]) -> Iterator[Finding]:
    """Files at a path of another file, a mount or the engine's program.

    Args:
        listed: files of recipe and settings, each with the place of its entry.
    """
    container = service.container
    taken = {model.mount: f"weights of {model.repository}" for model in service.models}
    taken |= dict.fromkeys(container.writable if container.strict else (), "a writable directory")
    taken[service.entrypoint] = "the engine's program"
    for file, where in listed:
        for path, other in taken.items():
            if overlap(file.at, path):
                facts = {"path": path, "other": other}
                yield _MESSAGES.mistake("path-taken", f"{where}.{file.at}", **facts)
        taken[file.at] = f"another file ({file.name})"


def _read(file: File, where: str, plan: HostPlan, recipe: Path | None, lock: _Lock) -> PlannedFile:
    """A file with its content. Raises UserError."""
    if file.source is not None:
        catalogs = reversed(places.catalogs(plan.settings.catalog_directories))
        folders = [folder for each in catalogs for folder in (each, each / "recipes")]
        folders = [recipe.parent] if recipe else folders
        path, content = source_of(file.source, folders, where, _MOST)
        planned = PlannedFile(file, str(path), content)
    else:
        pin = _pinned(file, plan, lock())
        planned = PlannedFile(file, file.name, pin.text.encode(), pin)
    if file.sha256 not in (None, planned.sha256):
        facts = {"source": planned.source, "sha256": planned.sha256}
        raise _MESSAGES.refusal("changed-file", f"{where}.sha256", **facts)
    return planned


def _pinned(file: File, plan: HostPlan, lock: Lock | None) -> pinned_text.PinnedText:
    """A repository's file, by the lock or from the hub."""
    if lock and (pin := (lock.files or {}).get(file.name)):
        return pin
    settings = plan.settings
    token = credentials.hub_token(settings.hub_token_source)
    named = (str(file.repository), str(file.revision), str(file.file))
    shown = token.value if token else None
    return hub.ask_hub(settings.hub_endpoint, *named, shown, settings.private_servers)


def _mistaken(service: ServicePlan, files: Sequence[PlannedFile]) -> Iterator[Finding]:
    """Mistakes of templates, found in a process with limits: the engine's own template is
    rendered.
    """
    program, arguments = engine(service.engine), dict(service.arguments)
    chat = arguments.get(program.limit_names.get("template", ""))
    limits = program.limits(arguments)
    messages = "scored" if limits.pools else "messages"
    for file in files:
        named = file.file.at == chat
        if file.file.is_template or named:
            try:
                text = file.content.decode()
            except UnicodeDecodeError as error:
                line, reason = 0, f"byte {error.start} is not UTF-8"
            else:
                line, reason = trial(text, messages * named, limits.tools is not None)
            if reason:
                where = f"{file.source}: line {line}" if line else file.source
                yield _MESSAGES.mistake("bad-template", where, reason=reason)
