"""The boot before is read where it ended without a shutdown, and a clean end is no fault."""

from pathlib import Path

import pytest

from sparkwright.host import doctor
from tests.host.programs import program

_LINES = """NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)
usb 1-1: new device"""


@pytest.mark.parametrize(
    ("last", "kernel", "expected"),
    [
        ("", f"echo '{_LINES}'", [_LINES.splitlines()[0]]),
        ("Journal stopped", f"echo '{_LINES}'", []),
        ("", "echo 'no such boot' >&2; exit 1", []),
    ],
    ids=["power cut", "shutdown", "no journal of it"],
)
def test_the_boot_before(
    last: str, kernel: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = f"""case "$*" in
*MESSAGE_ID=*) printf '{last}' ;;
*"-k"*"-b -1"*) {kernel} ;;
*) exit 3 ;;
esac"""
    program(tmp_path / "bin", "journalctl", asked)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert doctor.boot_before() == expected
