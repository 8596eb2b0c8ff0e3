"""vLLM's own media loader, with the arguments and variables of a service."""

import json
import subprocess
from typing import Any

import pytest

from lab.real_engine.build import Engine
from lab.real_engine.tree import inside
from sparkwright.host.smoke.picture import Picture
from sparkwright.plan.service import container_command
from tests.unit.builders import SPARK, plan

PICTURE = Picture(("red", "circle"), ("blue", "square"), "LAMP").data_url()
#: Program that runs a neighbour's server and vLLM's media loader, and prints the requests to the
#: server and the results of the loader.
READ = """
import http.server, json, sys, threading
from vllm.multimodal.media.connector import MediaConnector
class Neighbour(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("ASKED", self.path)
        self.send_response(302)
        self.send_header("Location", f"http://localhost:{server.server_port}/private")
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Neighbour)
threading.Thread(target=server.serve_forever, daemon=True).start()
for url in (f"http://127.0.0.1:{server.server_port}/picture", sys.argv[2]):
    try:
        MediaConnector(allowed_media_domains=json.loads(sys.argv[1])).fetch_image(url)
        print("READ", url[:5])
    except Exception as error:
        print("REFUSED", url[:5])
"""


@pytest.mark.parametrize(
    ("domains", "did"),
    [([], ["REFUSED http:"]), (["127.0.0.1"], ["ASKED /picture", "REFUSED http:"])],
)
def test_no_request_makes_an_engine_contact_a_neighbour(
    domains: list[str], did: list[str], engine: Engine
) -> None:
    (service,) = plan({"s": {**SPARK["qwen36"], "media_domains": domains}}).services
    command = container_command(service)
    _, _, rest = " ".join(command.arguments).partition(" --allowed-media-domains ")
    allowed: Any = rest.split(" --")[0].split() or None
    program = inside(engine.root, ["/usr/bin/python3", "-c", READ, json.dumps(allowed), PICTURE])
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", **command.environment}
    done = subprocess.run(program, env=variables, stdout=-1, text=True, timeout=300, check=True)
    lines = [line for line in done.stdout.splitlines() if line[:4] in ("ASKE", "READ", "REFU")]
    assert lines == [*did, "READ data:"]
