"""Reading nvidia-smi: captures and forms observed on real hosts."""

from pathlib import Path

import pytest

from sparkwright.catalog import gpus as families
from sparkwright.host.lib import gpu as program
from sparkwright.host.lib.gpu import STATE, Gpus, parse
from tests.tables import Tables

cases = Tables(__file__)


@cases("form")
def test_every_form_of_a_missing_number_becomes_none(form: str) -> None:
    (gpu,) = parse(f"NVIDIA GB10, {form}, {form}, {form}")
    assert (gpu.compute_cap, gpu.driver, gpu.memory_mib) == (None, None, None)
    assert families.family(gpu.compute_cap) == "unknown architecture"


def test_messages_are_not_read_as_gpus() -> None:
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    assert parse(text) == ()
    assert parse("No devices were found") == ()


@cases("compute_cap", "family")
def test_gpu_families_have_names(compute_cap: str, family: str) -> None:
    (gpu,) = parse(f"Some GPU, {compute_cap}, 580.1, 1 MiB")
    assert families.family(gpu.compute_cap) == family


def test_a_gpus_state_is_numbers_or_unknown() -> None:
    busy = "NVIDIA GB10, 580.95.05, 66, 62.50 W, 96 %, 2418 MHz, 3003 MHz, 0x0000000000000020"
    (gpu,) = parse(busy, STATE)
    assert (gpu.temperature_c, gpu.power_w, gpu.busy_percent) == (66, 62.5, 96)
    assert (gpu.clock_mhz, gpu.clock_max_mhz, gpu.event_reasons) == (2418, 3003, 0x20)
    (gpu,) = parse("NVIDIA GB10" + ", [N/A]" * 7, STATE)
    assert (gpu.driver, gpu.power_w, gpu.clock_mhz, gpu.event_reasons) == (None, None, None, 0)


def test_a_driver_without_a_field_is_queried_for_the_other_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        """#!/bin/sh
case "$1" in
*clocks_event*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
*) echo 'NVIDIA GB10, 580.95.05, 41, 10.20 W, 0 %, 208 MHz, 3003 MHz' ;;
esac
"""
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (gpu,) = program.ask().gpus
    assert (gpu.clock_mhz, gpu.event_reasons) == (208, 0)
    smi.write_text("#!/bin/sh\necho 'Failed to initialize NVML' >&2\nexit 18\n")
    assert program.ask() == Gpus(True, 18, "Failed to initialize NVML")
    smi.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.ask() == Gpus(False, None, "nvidia-smi is not installed")


def test_valid_names_are_read_and_invalid_names_left_out() -> None:
    uuid = "GPU-22222222-2222-4222-8222-222222222222"
    fields = ("name", *program.NAMES)
    gpus = parse(f"A, 1, {uuid}\nB, [N/A], \x1b[2J", fields)
    assert [(gpu.index, gpu.uuid) for gpu in gpus] == [(1, uuid), (None, None)]
