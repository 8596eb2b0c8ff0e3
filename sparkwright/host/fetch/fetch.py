"""Entry of the program: `python3 -I -S fetch.py [--runtime DIR] [--task TASK] REQUEST`.

Standard library only. --runtime names the unpacked tree with huggingface_hub and hf_transfer.
REQUEST is a JSON file. Tasks: `run` fetches a repository (request.py), `pull` gets an image into
Docker (pull.py), `share` lets other hosts take what is here (peer_server.py).
Exit codes: 0 done, 1 failed, 75 temporary: run it again.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

#: What it does -> the module that does it.
_TASKS = {"run": "run", "pull": "pull", "share": "peer_server"}


def _main() -> int:
    parser = argparse.ArgumentParser(description="Fetch a model or an image onto this host.")
    parser.add_argument("--runtime", type=Path, help="unpacked tree with huggingface_hub")
    parser.add_argument("--task", choices=tuple(_TASKS), default="run")
    parser.add_argument("request", type=Path, help="JSON file that says what to fetch")
    arguments = parser.parse_args()
    # -I leaves the script's folder off sys.path. The root of the tree goes last on the path: it can
    # never hide another module.
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    task = importlib.import_module(f"sparkwright.host.fetch.{_TASKS[arguments.task]}")
    code: int = task.run(arguments.request, arguments.runtime)
    return code


if __name__ == "__main__":
    # os._exit: a worker blocked on a dead line must not hold up the end. Everything that has
    # to be on the disk is there by now.
    code = _main()
    sys.stderr.flush()
    os._exit(code)
