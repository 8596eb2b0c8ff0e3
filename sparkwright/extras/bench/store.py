"""Results as files: ``<directory>/<host>/<service>/<UTC time>.json``, one per run.

A file that can't be read is reported by name, and the other files are used.
"""

from pathlib import Path

from sparkwright.documents.generated_json import read as read_json
from sparkwright.documents.text_files import write
from sparkwright.extras.bench.results import Result
from sparkwright.findings import finding, user_error

_MESSAGES = user_error.Messages(__file__)
#: Format of a file's name: names sort by time, and need no quoting in a shell.
_NAME = "%Y%m%dT%H%M%SZ"


def save(directory: Path, result: Result) -> Path:
    """Store a result under its own name; a half-written file never has this name.

    Raises:
        UserError: the service has a result of the same second.
    """
    path = directory / result.host / result.service / f"{result.when.strftime(_NAME)}.json"
    if path.exists():
        raise _MESSAGES.refusal("same-second", str(path))
    write(path, result.model_dump_json(by_alias=True, indent=1) + "\n")
    return path


def load(directory: Path) -> tuple[dict[tuple[str, str], Result], tuple[finding.Finding, ...]]:
    """Read the newest result of every host and service; report newer files that can't be read."""
    problems: list[finding.Finding] = []
    newest: dict[tuple[str, str], Result] = {}
    for path in sorted(directory.glob("*/*/*.json"), reverse=True):
        service, host = (folder.name for folder in path.parents[:2])
        if (host, service) in newest:
            continue
        result: Result | None = read_json(
            Result, path, "measure again, or remove the file", problems
        )
        if result and (result.host, result.service) == (host, service):
            newest[host, service] = result
        elif result:
            problems.append(_MESSAGES.mistake(
                "other-service", str(path), result=result, host=host, service=service
            ))  # fmt: skip
    return newest, tuple(problems)
