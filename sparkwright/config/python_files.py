"""Python files that users write, inventories and group_data: read and run within bounds.

The files are the user's own code and have the user's rights: this module can't catch a call of
``os._exit``, which ends the process, or a loop within a C function, which blocks the process.
"""

import ast
import codecs
import contextlib
import io
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from sparkwright.documents import text_files as files
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import refusal

#: Largest size of a file in bytes.
_LARGEST = 1024**2
#: Largest number of ``for`` clauses of one comprehension: some thousands crash Python's compiler.
_CLAUSES = 50
#: Limits in seconds of a file's CPU time and total time; a file may wait for a directory service.
COMPUTING = 3.0
TAKING = 60.0


class _TooLong(BaseException):
    """A file runs too long. The file's own ``except Exception`` does not catch this exception."""


def source(path: Path) -> tuple[ast.Module, CodeType]:
    """Parse and compile a file.

    Raises:
        UserError: the file can't be read, or is not Python; the message has the line.
    """
    try:
        if files.read_bytes(path, _LARGEST).startswith(codecs.BOM_UTF8):
            problem = "the file begins with a byte order mark, which pyinfra can't read"
            raise Unusable(problem, "save the file in UTF-8 without a byte order mark", 1)
        return _compiled(files.read(path, _LARGEST), path)
    except Unusable as error:
        raise refusal(error.place(str(path)), error.fault, error.remedy) from None


def run(path: Path, code: CodeType | None = None) -> dict[str, Any]:
    """Run a file as pyinfra does, and return the names that its top level defines.

    The file's output goes to standard error. The file has no standard input, so it can't prompt.

    Raises:
        UserError: the file can't be read or run; the message has the line.
    """
    code = code or source(path)[1]
    result: dict[str, Any] = {"__file__": str(path)}
    before = sys.stdin, sys.dont_write_bytecode
    # A check writes nothing, not even bytecode of imported modules.
    sys.stdin, sys.dont_write_bytecode = io.StringIO(), True
    try:
        with _limited(), contextlib.redirect_stdout(sys.stderr):
            exec(code, result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        line = _line(error, path)
        where = f"{path}: line {line}" if line else str(path)
        raise refusal(where, _description(error), "fix that line") from None
    finally:
        sys.stdin, sys.dont_write_bytecode = before
    return {
        key: value
        for key, value in result.items()
        if not (key.startswith("__") and key.endswith("__"))
    }


def imported(tree: ast.Module) -> set[str]:
    """Return the names that a file imports, which are not settings."""
    result: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            result.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
    return result


def imports_pyinfra(tree: ast.Module) -> bool:
    """Return whether a file may use pyinfra's own context, which does not exist before its run."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return any(name.split(".")[0] == "pyinfra" for name in modules)


def _compiled(text: str, path: Path) -> tuple[ast.Module, CodeType]:
    try:
        tree = ast.parse(text, str(path))
        for node in ast.walk(tree):
            if len(getattr(node, "generators", ())) > _CLAUSES:
                raise Unusable(
                    "a comprehension has too many 'for' clauses", "write it as nested loops"
                )
        return tree, compile(tree, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise Unusable(f"not valid Python: {error.msg}", "fix that line", error.lineno) from None
    except (RecursionError, MemoryError):
        raise Unusable("not valid Python: nested too deeply", "use fewer nested levels") from None
    except ValueError as error:  # a NUL
        raise Unusable(f"not valid Python: {error}", "save it as plain text") from None


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Interrupt code that runs too long. Timers work in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise _TooLong

    clocks = (
        (signal.ITIMER_PROF, signal.SIGPROF, COMPUTING),
        (signal.ITIMER_REAL, signal.SIGALRM, TAKING),
    )
    handlers = [(number, signal.signal(number, end)) for _, number, _ in clocks]
    # The timers repeat, since a file may catch every exception.
    timers = [(timer, signal.setitimer(timer, limit, 0.1)) for timer, _, limit in clocks]
    try:
        yield
    finally:
        for timer, was in timers:
            signal.setitimer(timer, *was)
        for number, handler in handlers:
            signal.signal(number, handler)


def _description(error: BaseException) -> str:
    if isinstance(error, _TooLong):
        return f"runs without end (over {COMPUTING:g} s of CPU time, or {TAKING:g} s in total)"
    if isinstance(error, SystemExit):
        return "ends the program (SystemExit) instead of defining hosts or settings"
    if isinstance(error, EOFError):
        return "reads input, but has no standard input"
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the exception's own __str__ may fail
        return type(error).__name__


def _line(error: BaseException, path: Path) -> int:
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == str(path)]
    return lines[-1] if lines else 0
