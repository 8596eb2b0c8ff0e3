"""Secrets that a command on the controller prints: ``pass``, ``op``, ``sops -d``."""

import queue
import shlex
import subprocess
import threading
from functools import cache
from typing import IO

from sparkwright.findings.user_error import Messages

_MESSAGES = Messages(__file__)
#: Seconds for a command: the user may have to unlock the store first.
TIMEOUT = 60.0
#: Bytes of a command's output; longer output is not a secret.
LARGEST = 65536


@cache
def printed(command: tuple[str, ...], setting: str, *, shown: bool = True) -> str:
    """Return the output of a command without surrounding white space. The command runs once per
    run.

    The command is started unchanged, without a shell and without standard input. Messages show the
    command's standard error, and never the command's output.

    Args:
        setting: name of the command's setting, for messages.
        shown: whether messages show the command's arguments.

    Raises:
        UserError: the command can't be started, fails, takes longer than a minute, or prints
            nothing, too much, or no text.
    """
    where = f"{setting}: {shlex.join(command)}" if shown else setting
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _MESSAGES.refusal("not-started", where, reason=reason) from None
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, message = _read(process.stdout), _read(process.stderr)
        try:
            data = out.get(timeout=TIMEOUT)
            if len(data) > LARGEST:
                raise _MESSAGES.refusal("prints-much", where, most=LARGEST)
            code = process.wait(TIMEOUT)
            text = data.decode().strip()
            if code:
                hidden = text if shown else "\n".join((text, *command[1:]))
                end = _shown(message.get(timeout=TIMEOUT), hidden)
                raise _MESSAGES.refusal("exit-code", where, code=code, shown=end)
        except (queue.Empty, subprocess.TimeoutExpired):
            raise _MESSAGES.refusal("slow-command", where, seconds=TIMEOUT) from None
        except UnicodeDecodeError:
            raise _MESSAGES.refusal("prints-no-text", where) from None
        finally:
            process.kill()
    if not text:
        raise _MESSAGES.refusal("prints-nothing", where)
    return text


def line(command: tuple[str, ...], setting: str) -> str:
    """Return the one line that a command prints; see ``printed``.

    Raises:
        UserError: as in ``printed``, or the output has several lines.
    """
    text = printed(command, setting)
    if len(lines := text.splitlines()) > 1:
        where = f"{setting}: {shlex.join(command)}"
        raise _MESSAGES.refusal("prints-lines", where, lines=len(lines))
    return text


def _read(stream: IO[bytes]) -> queue.Queue[bytes]:
    """Read a stream up to its end or the limit in a thread: a full pipe would block the command."""
    result: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=lambda: result.put(stream.read(LARGEST + 1)), daemon=True).start()
    return result


def _shown(output: bytes, secret: str) -> str:
    """Return the end of the command's standard error as one line, without its output."""
    text = output.decode(errors="replace")
    for part in filter(None, secret.splitlines()):
        text = text.replace(part, "(secret)")
    shown = " ".join("".join(item if item.isprintable() else " " for item in text).split())
    return shown[-300:] or "no message on standard error"
