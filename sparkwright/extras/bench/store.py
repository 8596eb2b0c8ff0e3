"""Results as files: ``<directory>/<host>/<service>/<UTC time>.json``, one per run.

Reading never fails as a whole: a file that can't be read is reported by name, and the other files
count.
"""

from dataclasses import dataclass
from pathlib import Path

from sparkwright.documents.generated_json import read as read_json
from sparkwright.documents.text_files import write
from sparkwright.extras.bench.results import Result
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages

_MESSAGES = Messages(__file__)
#: Sorts by name as it does by time, and needs no quoting in a shell.
_NAME = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Stored:
    """Contents of a directory.

    Attributes:
        services: (host, service) -> results, the oldest first.
        problems: files that could not be read, each with its problems.
    """

    services: dict[tuple[str, str], tuple[Result, ...]]
    problems: tuple[Finding, ...]


def path_of(directory: Path, result: Result) -> Path:
    """Where a result is kept."""
    name = f"{result.when.strftime(_NAME)}.json"
    return directory / result.host / result.service / name


def save(directory: Path, result: Result) -> Path:
    """Store a result under its own name; a half-written file never has this name.

    Raises:
        UserError: the service has a result of the same second.
    """
    path = path_of(directory, result)
    if path.exists():
        raise _MESSAGES.refusal("same-second", str(path))
    write(path, result.model_dump_json(by_alias=True, indent=1) + "\n")
    return path


def load(directory: Path, *, last: int | None = None) -> Stored:
    """Read a directory's contents; a missing directory is empty.

    Args:
        last: number of newest results of each service, so that a page stays bounded. None for all.
    """
    problems: list[Finding] = []
    newest = slice(-last if last else None, None)
    folders = sorted(directory.glob("*/*"))
    # The names sort by time. Broken files count too, so that each is reported.
    paths = [path for folder in folders for path in sorted(folder.glob("*.json"))[newest]]
    read = [_of_file(path, problems) for path in paths]
    services: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(filter(None, read), key=lambda item: (item.host, item.service, item.when)):
        services.setdefault((result.host, result.service), []).append(result)
    kept = {key: tuple(runs) for key, runs in services.items()}
    return Stored(kept, tuple(problems))


def _of_file(path: Path, problems: list[Finding]) -> Result | None:
    result: Result | None = read_json(Result, path, "measure again, or remove it", problems)
    service, host = (folder.name for folder in path.parents[:2])
    if result is None or (result.host, result.service) == (host, service):
        return result
    problems.append(
        _MESSAGES.mistake("other-service", str(path), result=result, host=host, service=service)
    )
    return None
