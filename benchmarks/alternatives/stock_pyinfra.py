"""The same tasks as deploy.py, with pyinfra's own operations, facts and connection.

A deploy as a good pyinfra user would write it by hand, for a host without pending changes.
Values come from the run's variables file (benchmarks/converged.py writes it from the plan).
"""

import io
import json
import os
from pathlib import Path
from typing import Any

from pyinfra.context import host
from pyinfra.facts.files import Directory, File
from pyinfra.facts.hardware import Memory
from pyinfra.facts.server import Arch, Command, Kernel
from pyinfra.operations import files, python, systemd

VARIABLES: dict[str, Any] = json.loads(Path(os.environ["STOCK_VARIABLES"]).read_text())[host.name]
ROOT = "/opt/sparkwright"
HOME = f"{ROOT}/services/qwen36"

gpu = host.get_fact(
    Command,
    "nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader",
)
assert int(gpu.split(",")[2].split(".")[0]) >= 580, gpu
host.get_fact(Command, "nvidia-ctk --version")
docker = json.loads(host.get_fact(Command, "docker info --format '{{json .}}'", _sudo=True))
assert int(docker["ServerVersion"].split(".")[0]) >= 25
assert "nvidia" in docker["Runtimes"]
host.get_fact(Command, "docker compose version --short")
host.get_fact(Command, "timedatectl show -p NTPSynchronized --value")
host.get_fact(Command, "ss -Hltnp", _sudo=True)
host.get_fact(Memory)
host.get_fact(Arch)
host.get_fact(Kernel)
host.get_fact(Command, "df -P /opt /var/lib/docker")

for path, mode in (
    ("/opt/models", 755),
    (ROOT, 755),
    (f"{ROOT}/services", 755),
    (f"{ROOT}/runtime", 755),
    (f"{ROOT}/state", 700),
    (HOME, 750),
    (f"{HOME}/releases", 750),
):
    files.directory(name=f"Directory {path}", path=path, mode=mode, user="root", _sudo=True)

for model in VARIABLES["models"]:
    assert host.get_fact(Directory, path=model, _sudo=True)
    assert host.get_fact(File, path=f"{model}/.sparkwright-receipt.json", _sudo=True)
    host.get_fact(Command, f"find {model} -type f -printf '%s %T@ %p\\n'", _sudo=True)
host.get_fact(Command, f"docker image inspect {VARIABLES['image']}", _sudo=True)

files.put(
    name="Compose file",
    src=io.StringIO(VARIABLES["compose"]),
    dest=f"{HOME}/releases/{VARIABLES['release']}/compose.yaml",
    mode=640,
    user="root",
    _sudo=True,
)
files.put(
    name="Unit",
    src=io.StringIO(VARIABLES["unit"]),
    dest="/etc/systemd/system/sparkwright-qwen36.service",
    mode=644,
    user="root",
    _sudo=True,
)
files.put(
    name="Secrets",
    src=io.StringIO(VARIABLES["secrets"]),
    dest=f"{HOME}/secrets.env",
    mode=600,
    user="root",
    _sudo=True,
)
files.link(
    name="Current release",
    path=f"{HOME}/current",
    target=f"releases/{VARIABLES['release']}",
    _sudo=True,
)
systemd.service(
    name="Service", service="sparkwright-qwen36", running=True, enabled=True, _sudo=True
)
host.get_fact(Command, "docker inspect sparkwright-qwen36", _sudo=True)


def _ask(command: str) -> None:
    assert host.get_fact(Command, command), command


AUTHORIZED = f"-H 'Authorization: Bearer {VARIABLES['key']}'"
BODY = json.dumps(
    {
        "model": "qwen36-35b-heretic",
        "messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}],
        "max_tokens": 32,
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
)
URL = "http://127.0.0.1:8000"
ASK = f"curl -fsS {AUTHORIZED} -d '{BODY}' -H 'Content-Type: application/json'"
for name, command in (
    ("Health", f"curl -fsS -w ok {URL}/health"),
    ("Models", f"curl -fsS {AUTHORIZED} {URL}/v1/models"),
    ("Key is required", f"curl -s -w '%{{http_code}}' -o /dev/null {URL}/v1/models | grep 401"),
    ("Generation", f"{ASK} {URL}/v1/chat/completions"),
):
    python.call(name=name, function=_ask, command=command)
