"""Answers and log lines of hostile code in a container, to the switch and the gate."""

import time
from pathlib import Path

import pytest

from sparkwright.engines import metric_names
from sparkwright.host import second_boot
from sparkwright.host.lib import journal
from sparkwright.host.service import SmokeRequest
from tests.host.serving import Handler, listening


class Engine(Handler):
    """Answers everything with one text."""

    text: str

    def do_GET(self) -> None:
        self.reply(200, self.text.encode())


@pytest.mark.parametrize(
    ("blocks", "read"),
    [("30539", 30539), ("²", None), ("9" * 5000, None), ("-1", None), ("", None), ("None", None)],
)
def test_no_number_of_blocks_ends_a_switch(tmp_path: Path, blocks: str, read: int | None) -> None:
    secrets = tmp_path / "secrets.env"
    secrets.write_text("VLLM_API_KEY=k\n")
    text = f'vllm:cache_config_info{{num_gpu_blocks="{blocks}"}} 1.0\n'
    with listening(Engine, text=text) as port:
        gate = SmokeRequest("a", "a.service", "127.0.0.1", port, str(secrets), ("a",), 1, 1,
                            metric_names=metric_names())  # fmt: skip
        assert second_boot.kv_blocks(gate) == read


def test_no_line_of_a_log_keeps_a_gate_busy() -> None:
    """A journal's lines have 48 KiB at most, and the gate reads 400 of them."""
    lines = [
        "1." * 24_000,
        "a." * 24_000,
        "a" * 48_000,
        "Error" * 9_000,
        "error:" * 8_000,
        ": " * 24_000,
    ]
    began = time.monotonic()
    journal.cause(lines * 80)
    assert time.monotonic() - began < 10
