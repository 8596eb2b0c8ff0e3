"""Reading nvidia-smi: captures and forms that were seen on real hosts."""

from __future__ import annotations

import pytest

from sparkwright.catalog.gpu import driver_major, parse_query


def test_gb10_has_no_memory_of_its_own() -> None:
    (gpu,) = parse_query("NVIDIA GB10, 12.1, 580.95.05, [N/A]\n")
    assert (gpu.name, gpu.compute_cap, gpu.driver) == ("NVIDIA GB10", "12.1", "580.95.05")
    assert gpu.memory_mib is None
    assert gpu.unified


@pytest.mark.parametrize(
    "form", ["[N/A]", "N/A", "Not Supported", "[Not Supported]", "Unknown Error"]
)
def test_no_form_of_a_missing_number_breaks_anything(form: str) -> None:
    (gpu,) = parse_query(f"NVIDIA GB10, {form}, {form}, {form}")
    assert (gpu.compute_cap, gpu.driver, gpu.memory_mib) == (None, None, None)
    assert gpu.family == "unknown architecture"


def test_discrete_cards_give_mebibytes() -> None:
    text = (
        "NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607 MiB\n"
        "NVIDIA H200, 9.0, 580.159.04, 143771 MiB\n"
    )
    assert [gpu.memory_mib for gpu in parse_query(text)] == [32607, 143771]


def test_messages_are_no_gpus() -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    assert parse_query(said) == []
    assert parse_query("No devices were found") == []


@pytest.mark.parametrize(
    ("compute_cap", "family"),
    [
        ("12.1", "GB10 (sm_121a)"),
        ("12.0", "RTX 50 / RTX PRO Blackwell (sm_120)"),
        ("10.0", "data-centre Blackwell (B200/GB200)"),
        ("9.0", "Hopper"),
        ("8.9", "Ada"),
        ("8.0", "Ampere"),
        ("8.6", "Ampere"),
        ("13.0", "sm_130"),
    ],
)
def test_families_have_names(compute_cap: str, family: str) -> None:
    (gpu,) = parse_query(f"Some GPU, {compute_cap}, 580.1, 1 MiB")
    assert gpu.family == family


def test_driver_major() -> None:
    assert driver_major("580.95.05") == 580
    assert driver_major(None) is None
    assert driver_major("Unknown Error") is None
