"""Two virtual hosts that serve one model, observed from outside."""

import json
import time
from typing import Any

from tests.fleet.site import Site, bare, inside, until

HEAD, FOLLOWER = "spark-1", "spark-2"
INVENTORY = "inventory/cluster.py"
BOTH = ("--limit", "sparks")
_CLUSTER = """
_PAIR = {
    "hosts": ["spark-1", "spark-2"], "fabric": "network", "interface": "host0",
    "addresses": {"spark-1": "10.213.77.11", "spark-2": "10.213.77.12"},
}
for _, _data in sparks:
    _data["clusters"] = {"pair": _PAIR}
    _data["services"] = SERVICES
"""


def empty(site: Site) -> None:
    """Both hosts are on, and serve nothing."""
    site.power_on()
    site.repair()
    for host in (HEAD, FOLLOWER):
        bare(host)


class Pair:
    """A service that runs on both hosts.

    Attributes:
        name: name of the service.
        model, port: model and port for clients.
        boot: longest time of a whole start of both engines in seconds, on a busy machine.
    """

    def __init__(self, site: Site, name: str, model: str, boot: float, **service: Any) -> None:
        self.site, self.name, self.model, self.boot = site, name, model, boot
        self.port, self._service = int(service["port"]), service
        self.serve()

    def serve(self, **changes: Any) -> None:
        """Write the inventory, with changes to the service's settings."""
        services = {self.name: {"cluster": "pair", **self._service, **changes}}
        inventory = (self.site.folder / "inventory/virtual.py").read_text()
        text = inventory + _CLUSTER.replace("SERVICES", repr(services))
        (self.site.folder / INVENTORY).write_text(text)

    def deploy(self, **keywords: Any) -> Any:
        """A run on both hosts that must succeed."""
        return self.site.deploy(*BOTH, inventory=INVENTORY, **keywords)

    def state(self, host: str) -> dict[str, Any]:
        """Progress of a host's rank, from the rank's own file."""
        path = f"/opt/sparkwright/services/{self.name}/rank-state.json"
        return dict(json.loads(inside(host, "sh", "-c", f"cat {path} || echo '{{}}'")))

    def session(self) -> str | None:
        """The session that both ranks serve; None without a common session."""
        result = [self.state(host) for host in (HEAD, FOLLOWER)]
        serving = {
            item.get("session") if item.get("step") == "serving" else None for item in result
        }
        return serving.pop() if len(serving) == 1 else None

    def release(self, host: str) -> str:
        """Release that `current` points at."""
        path = f"/opt/sparkwright/services/{self.name}/current"
        return inside(host, "readlink", path).rpartition("/")[2]

    def generates(self) -> bool:
        """Whether a client gets an answer, at the head's proxy."""
        body = json.dumps({"model": self.model, "prompt": "1 2 3", "max_tokens": 2})
        text = inside(
            HEAD, "curl", "-s", "-m", "30", f"http://127.0.0.1:{self.port}/v1/completions",
            "-H", f"Authorization: Bearer {self.site.key}", "-H", "Content-Type: application/json",
            "-d", body, "-w", "\n%{http_code}", "--retry", "0",
        )  # fmt: skip
        return text.endswith("200")

    def whole(self, before: str | None = None) -> None:
        """Wait until both ranks serve together, in a new session, and the service answers."""

        def holds() -> bool:
            time.sleep(1)
            if self.session() in (None, before):
                return False
            try:
                return self.generates()
            except AssertionError:  # the proxy has no server yet
                return False

        until(holds, f"whole: {self.state(HEAD)} {self.state(FOLLOWER)}", self.boot)
