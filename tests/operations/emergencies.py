"""Sites with a broken plan, and hosts that answer: `sparkwright` and pyinfra run as users run them.

The hosts are pyinfra's test hosts (``@fake``), so that no request leaves this machine.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.host.lib.records import encode
from tests import forked
from tests.operations.harness import marked
from tests.operations.real import INSTANT
from tests.unit.builders import ROOT, probe

#: No program listens at this address.
NOBODY = "http://127.0.0.1:9"
SERVICE = {"recipe": "qwen36-35b-a3b-heretic-dflash", "port": 8000}
#: Data of every host: a plan that is valid, except for unreachable servers.
PLAN = {
    "services": {"qwen36": SERVICE},
    "hub_endpoint": NOBODY,
    "image_mirrors": {"ghcr.io": NOBODY},
    "catalog_directories": (),
}
#: In tests the plan needs no data of pyinfra's hosts.
_CONFIG = """
from sparkwright.config import parse
parse.CONNECTION_KEYS += ("fake_delay", "fake_delay_jitter", "fake_responses")
from sparkwright.run import site
site.install()
"""


def program(name: str) -> str:
    """Name of a sparkwright program in its command on the host."""
    return f"sparkwright-{name.replace('_', '-')}"


def host(name: str, data: Mapping[str, Any] | None = None, **answers: Any) -> tuple[str, Any]:
    """A host of the inventory.

    Args:
        answers: program -> its answer, with _ for -; text is printed unchanged.
    """
    answers.setdefault("observe", probe())
    texts = {
        program(item): answer if isinstance(answer, str) else marked(json.dumps(encode(answer)))
        for item, answer in answers.items()
    }
    return f"@fake/{name}", {**PLAN, **INSTANT, "fake_responses": texts, **(data or {})}


def unreachable(name: str) -> tuple[str, Any]:
    """A host at an address without an answer."""
    return name, {**PLAN, "ssh_hostname": "127.0.0.1", "ssh_port": 9}


def write_site(folder: Path, *hosts: tuple[str, Any], **files: str) -> Path:
    """A site with these hosts.

    Args:
        files: further files of the site, by path with __ for /, without ``.py``.
    """
    (folder / "inventory").mkdir()
    (folder / "inventory/lab.py").write_text(f"boxes = {list(hosts)!r}\n")
    (folder / "config.py").write_text(_CONFIG)
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return folder


def sparkwright(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a site."""
    return _run(folder, "sparkwright", *arguments)


def pyinfra(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pyinfra in a site."""
    return _run(folder, "pyinfra", *arguments)


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SPARKWRIGHT_API_KEY": "sk-0123456789abcdef"}
    done = forked.run(arguments, folder, env)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done
