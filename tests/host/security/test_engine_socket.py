"""Attacks of a host's user on the engine's socket, also while the engine is stopped, and the health
check at a separate socket.
"""

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest

from sparkwright.host.lib import files
from sparkwright.host.lib.http import Server
from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthConfig, HealthService
from sparkwright.plan.container import SOCKET_MOUNT, container_entrypoint
from sparkwright.proxy.proxies import proxies_of
from tests.host.proxy.haproxy import opened, until
from tests.host.security.conftest import UID, connecting
from tests.host.serving import Handler, free_port
from tests.unit import builders

RECIPE = "qwen36-35b-a3b-heretic-dflash"
#: Program that listens wherever it can, answers every request, and records the received keys.
POSE = """
import http.server, socketserver, sys, threading
class Yes(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.command, self.headers["Authorization"], flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"forged")
    do_POST = do_GET
    def log_message(self, *_):
        pass
for at in sys.argv[1:]:
    try:
        if at.startswith("unix@"):
            server = socketserver.ThreadingUnixStreamServer(at[5:], Yes)
        else:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", int(at.rpartition(":")[2])), Yes)
        threading.Thread(target=server.serve_forever).start()
    except PermissionError:
        print("refused", flush=True)
"""


class _Engine(Handler):
    def do_GET(self) -> None:
        self.reply(200, b"real")

    do_POST = do_GET


def test_a_client_gets_503_and_never_another_programs_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkwright.plan.plan.SOCKETS", str(folder / "engines"), raising=False)
    monkeypatch.setattr("sparkwright.proxy.proxies.HEALTH", str(folder / "health"), raising=False)
    for made in (folder / "engines/llm", folder / "health"):  # as RuntimeDirectory does
        made.mkdir(parents=True)
        made.chmod(0o750)
        shutil.chown(made, group="haproxy")
    plan = builders.plan(services={"llm": {"recipe": RECIPE, "port": free_port()}})
    planned = proxies_of(plan, {})
    assert planned is not None
    proxies = replace(planned, home=f"{folder}/home", runtime=f"{folder}/run", wait_seconds=1,
                      check_milliseconds=50)  # fmt: skip
    with opened(proxies) as proxy:
        config = Path(proxies.config).read_text()
        installed = re.search(r"server self (\S+) check (?:port|addr) (\S+)", config)
        assert installed
        posing = subprocess.Popen(
            ["/usr/bin/python3", "-c", POSE, *installed.groups()],
            user=UID, group=UID, extra_groups=[], cwd="/", stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            time.sleep(2)
            answer = proxy.post("/v1/chat/completions")
        finally:
            posing.kill()
        shown, _ = posing.communicate()
        assert (answer.status, answer.body != b"forged") == (503, True)
        assert shown.split() == ["refused", "refused"]
        for at in installed.groups():  # HAProxy reaches the engine itself
            server = ThreadingUnixStreamServer(at.removeprefix("unix@"), _Engine)
            Path(at.removeprefix("unix@")).chmod(0o666)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        until(lambda: proxy.post("/v1/chat/completions").body == b"real", "the engine's answer")
        assert "PermissionError" in connecting(installed[1].removeprefix("unix@"))


@pytest.mark.parametrize("program", [None, "vllm"])
def test_a_stale_socket_is_replaced_and_no_other_file_changes_its_mode(
    tmp_path: Path, program: str | None
) -> None:
    """vLLM binds without removing an existing file, and leaves the mode to the umask."""
    engine = tmp_path / "vllm"
    engine.write_text(f"#!{sys.executable}\nimport socket, sys, time\n"
                      "socket.socket(socket.AF_UNIX).bind(sys.argv[1])\n"
                      "open(sys.argv[2], 'w').close()\ntime.sleep(20)\n")  # fmt: skip
    engine.chmod(0o755)
    at, other = tmp_path / "http.sock", tmp_path / "cache"
    with socket.socket(socket.AF_UNIX) as before:
        before.bind(str(at))
    (tmp_path / "engine.env").write_text("VLLM_API_KEY=k\n")
    command = container_entrypoint(str(engine), program=program, socket=True)
    command[2] = command[2].replace(SOCKET_MOUNT, str(tmp_path))
    command[2] = command[2].replace("/run/secrets", str(tmp_path))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    with subprocess.Popen([*command, str(at), str(other)], env=environment, umask=0o022) as running:
        try:
            until(lambda: at.is_socket() and at.stat().st_mode & 0o777 == 0o666, "its mode")
            until(other.exists, "another file")
            assert other.stat().st_mode & 0o777 == 0o644
        finally:
            running.kill()


def test_silent_connections_keep_no_client_out(tmp_path: Path) -> None:
    path = str(tmp_path / "health.sock")
    service = health.Service(HealthService("qwen36", "/no.sock", "/nothing", "m", 5), 30, {})
    service.well = True
    health.serve(service, path)
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
        assert Server(path, 0).get("/").status == 200


def test_the_program_runs_until_its_watch_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.12.0 to 3.12.2 can't start a thread for an answer once the main thread has ended."""
    began = time.monotonic()
    monkeypatch.setattr(health.Service, "watch", lambda _: time.sleep(0.3))
    service = HealthService(
        "qwen36", "/no.sock", "/nothing", "m", 5, health=str(tmp_path / "health.sock")
    )
    files.write_record(tmp_path / "health.json", HealthConfig((service,)))
    health.main(str(tmp_path / "health.json"))
    assert time.monotonic() - began >= 0.3
