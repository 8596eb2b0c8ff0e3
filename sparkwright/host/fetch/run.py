"""Run of a fetch, from the request to the exit code."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

from sparkwright.host.fetch.errors import FAILED, OK, Failed
from sparkwright.host.fetch.progress import Progress, log
from sparkwright.host.fetch.request import FetchRequest, PullRequest, read_fetch
from sparkwright.host.fetch.workspace import complete

_Request = TypeVar("_Request", FetchRequest, PullRequest)


def run(path: Path, runtime: Path | None) -> int:
    """Fetch what a request says. Returns the exit code."""
    return carry_out(path, read_fetch, partial(fetch, runtime=runtime))


def carry_out(
    path: Path,
    read: Callable[[Path], _Request],
    work: Callable[[_Request, Progress, Event], str],
) -> int:
    """Carry out a request, and write how far it is to progress.json in its state directory.

    Returns the exit code; the last line on stderr is the message.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    progress: Progress | None = None
    try:
        request = read(path)
        how = request.fetch if isinstance(request, PullRequest) else request
        progress = Progress(Path(how.state_dir))
        message, code = work(request, progress, stop), OK
    except Failed as error:
        message, code = str(error), error.exit_code
    except OSError as error:
        message, code = f"{error.filename or 'the disk'}: {error.strerror or error}.", FAILED
    except Exception as error:
        # A bug: name the place, without a traceback.
        import traceback

        frame = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{Path(frame.filename).name}:{frame.lineno}"
        message, code = f"internal error in {line}: {type(error).__name__}: {error}", FAILED
    if progress is not None:
        progress.end("done" if code == OK else "failed", message)
    log(message)
    return code


def fetch(
    request: FetchRequest, progress: Progress, stop: Event, runtime: Path | None = None
) -> str:
    """Return the message of success; raise Failed otherwise."""
    destination = Path(request.destination)
    if destination.is_symlink() or (destination.exists() and not destination.is_dir()):
        kind = "symlink" if destination.is_symlink() else "file"
        raise Failed("destination", path=destination, kind=kind)
    message = complete(request, progress)
    if message is None:
        # Imported here: most runs end above, and this takes longer than they do.
        from sparkwright.host.fetch import job

        message = job.fetch(request, progress, stop, runtime)
    return message
