"""Log lines in vLLM's form: `(APIServer pid=1) INFO 07-01 12:00:00 [utils.py:299] text`."""

import os
import sys
import time


def server(level: str, where: str, text: str) -> None:
    """Print a line (or several) of the API server's log on standard output."""
    _write("APIServer", level, where, text)


def engine(level: str, where: str, text: str) -> None:
    """Print a line (or several) of the engine process's log on standard output."""
    _write("EngineCore", level, where, text)


def uvicorn(text: str) -> None:
    """Print a line of uvicorn's own log."""
    print(f"(APIServer pid={os.getpid()}) INFO:     {text}", flush=True)


def raw(text: str) -> None:
    """Print a line unchanged on standard output."""
    print(text, flush=True)


def raw_error(text: str) -> None:
    """Print a line of a traceback on standard error."""
    print(f"(APIServer pid={os.getpid()}) {text}", file=sys.stderr, flush=True)


def _write(process: str, level: str, where: str, text: str) -> None:
    stamp = time.strftime("%m-%d %H:%M:%S")
    for line in text.splitlines() or [""]:
        print(f"({process} pid={os.getpid()}) {level} {stamp} [{where}] {line}", flush=True)
