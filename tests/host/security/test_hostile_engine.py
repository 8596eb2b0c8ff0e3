"""What code in a container can say to the switch that asks and the gate that reads its log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sparkwright.engines import metric_names
from sparkwright.host import second_boot
from sparkwright.host.lib import journal
from sparkwright.host.service import SmokeRequest


@contextmanager
def saying(text: str) -> Iterator[int]:
    """A server that answers everything with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("blocks", "read"),
    [("30539", 30539), ("²", None), ("9" * 5000, None), ("-1", None), ("", None), ("None", None)],
)
def test_no_number_of_blocks_ends_a_switch(tmp_path: Path, blocks: str, read: int | None) -> None:
    secrets = tmp_path / "secrets.env"
    secrets.write_text("VLLM_API_KEY=k\n")
    with saying(f'vllm:cache_config_info{{num_gpu_blocks="{blocks}"}} 1.0\n') as port:
        gate = SmokeRequest("a", "a.service", "127.0.0.1", port, str(secrets), ("a",), 1, 1,
                            metric_names=metric_names())  # fmt: skip
        assert second_boot.kv_blocks(gate) == read


def test_no_line_of_a_log_keeps_a_gate_busy() -> None:
    """A journal's lines have 48 KiB at most, and the gate reads 400 of them."""
    lines = ["a." * 24_000, "a" * 48_000, "Error" * 9_000, "error:" * 8_000, ": " * 24_000]
    began = time.monotonic()
    journal.cause(lines * 80)
    assert time.monotonic() - began < 10
