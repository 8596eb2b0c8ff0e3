"""Secrets that a command on the controller prints: ``pass``, ``op``, ``sops -d``."""

import queue
import shlex
import subprocess
import threading
from functools import cache
from typing import IO

from sparkwright.findings.user_error import refusal

#: Seconds: somebody may have to unlock the store first.
TIMEOUT = 60.0
#: Bytes of its output; more is no secret.
LARGEST = 65536


@cache
def printed(command: tuple[str, ...], setting: str) -> str:
    """Output of a command without surrounding white space. The command runs once per run.

    It is started as it stands, without a shell and with no standard input. What it prints is in no
    message, its standard error is.

    Args:
        setting: that names it, for messages.

    Raises:
        UserError: when it can't be started, fails, takes longer than a minute, or prints nothing,
            too much, or what is no text.
    """
    where = f"{setting}: {shlex.join(command)}"
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except (OSError, ValueError) as error:
        what = f"can't be started: {getattr(error, 'strerror', None) or error}"
        raise refusal(where, what, "install the program, or write its full path") from None
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, message = _read(process.stdout), _read(process.stderr)
        try:
            data = out.get(timeout=TIMEOUT)
            if len(data) > LARGEST:
                raise refusal(where, f"prints more than {LARGEST} bytes", "print the secret alone")
            code = process.wait(TIMEOUT)
            text = data.decode().strip()
            if code:
                shown = _shown(message.get(timeout=TIMEOUT), text)
                raise refusal(where, f"exit code {code}: {shown}", "run it by hand")
        except (queue.Empty, subprocess.TimeoutExpired):
            what = f"took longer than {TIMEOUT:.0f} s"
            raise refusal(where, what, "unlock the store first, then run again") from None
        except UnicodeDecodeError:
            raise refusal(where, "prints what is no text", "print the secret alone") from None
        finally:
            process.kill()
    if not text:
        raise refusal(where, "prints nothing", "run it by hand: it must print the secret")
    return text


def line(command: tuple[str, ...], setting: str) -> str:
    """As ``printed``, of a command whose output is one line.

    Raises:
        UserError: as ``printed``, and for more lines than one.
    """
    text = printed(command, setting)
    if len(lines := text.splitlines()) > 1:
        what = f"prints {len(lines)} lines, and a secret is one"
        raise refusal(f"{setting}: {shlex.join(command)}", what, "print the secret alone")
    return text


def _read(stream: IO[bytes]) -> queue.Queue[bytes]:
    """A stream up to its end or the limit, read beside others: a full pipe would block it."""
    result: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=lambda: result.put(stream.read(LARGEST + 1)), daemon=True).start()
    return result


def _shown(said: bytes, secret: str) -> str:
    """The end of its standard error as one line, without what it printed."""
    text = said.decode(errors="replace")
    for part in filter(None, secret.splitlines()):
        text = text.replace(part, "(secret)")
    shown = " ".join("".join(item if item.isprintable() else " " for item in text).split())
    return shown[-300:] or "without a word on standard error"
