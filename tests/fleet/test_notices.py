"""A killed service causes one notice, at a receiver in the lab's network."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from lab.layout import CONTROLLER
from tests.fleet.site import Site, answers, ssh, until

HOST = "spark-1"
ASKED = ("notify", "inventory/virtual.py", "--limit", HOST)


def test_a_killed_service_causes_one_notice(converged: Site) -> None:
    got: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Record a notice."""
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print no log."""

    def restarts() -> int:
        return int(ssh(HOST, "systemctl show -p NRestarts --value sparkwright-qwen36"))

    with HTTPServer((CONTROLLER, 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with (converged.folder / "group_data/all.py").open("a") as settings:
            settings.write(f'notify = ["webhook:http://{CONTROLLER}:{server.server_port}/me"]\n')
        (converged.folder / ".sparkwright/notified.json").unlink(missing_ok=True)
        ssh(HOST, "sudo systemctl start sparkwright-watch.service")
        before = restarts()
        ssh(HOST, "docker kill sparkwright-qwen36")
        until(lambda: restarts() > before, "systemd restarts it")
        ssh(HOST, "sudo systemctl start sparkwright-watch.service")

        text = converged.sparkwright(*ASKED)
        assert f"webhook at {CONTROLLER}: sent" in text
        (notice,) = got
        assert notice["title"].startswith(f"{HOST}: ")
        assert f"{HOST}: qwen36: restarts" in notice["message"]
        assert "restarts within an hour" in notice["message"]
        assert converged.key not in json.dumps(notice)

        text = converged.sparkwright(*ASKED)
        assert f"webhook at {CONTROLLER}: sent" not in text
        assert len(got) == 1
        converged.sparkwright("notify", "inventory/virtual.py", "--test")
        assert [item["title"] for item in got[1:]] == ["test"]
        server.shutdown()
    until(lambda: answers(converged, HOST), "it serves again")
