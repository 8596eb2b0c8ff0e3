"""Entry point of the program: `python3 -I -S fetch.py [--runtime DIR] [--task TASK] REQUEST`.

Standard library only. --runtime is the unpacked tree with hf_transfer and hf_xet. REQUEST
is a JSON file with the keys of FetchRequest. Tasks: `run` fetches a repository (job.py),
`pull` gets an image into Docker (pull.py), `peer-server` lets peers read files (peer_server.py).
Exit codes: 0 done, 1 failed.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

#: Task -> its module.
_TASKS = {"run": "job", "pull": "pull", "peer-server": "peer_server"}


def _main() -> int:
    parser = argparse.ArgumentParser(description="Fetch a model or an image onto this host.")
    parser.add_argument("--runtime", type=Path, help="unpacked tree with hf_transfer and hf_xet")
    parser.add_argument("--task", choices=tuple(_TASKS), default="run")
    parser.add_argument("request", type=Path, help="JSON file with the request")
    arguments = parser.parse_args()
    # -I keeps the script's folder off sys.path. The root of the tree goes last, so that it can't
    # shadow another module.
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    task = importlib.import_module(f"sparkwright.host.fetch.{_TASKS[arguments.task]}")
    code: int = task.run(arguments.request, arguments.runtime)
    return code


if __name__ == "__main__":
    # os._exit: a thread that waits for a dead connection must not delay the exit. All files have
    # been synced to the disk by now.
    code = _main()
    sys.stderr.flush()
    os._exit(code)
