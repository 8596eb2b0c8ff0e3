"""Visibility of the key when a real shell runs the rendered start of a container."""

import subprocess
from pathlib import Path

import pytest

from sparkwright.plan.container import SECRETS_MOUNT, container_entrypoint

KEY = "sk-of-nobody-0123456789abcdef"
#: A fake vLLM, which prints its command line and its API key.
VLLM = '#!/bin/sh\nprintf "key=%s\\n" "$VLLM_API_KEY"; tr "\\0" " " </proc/$$/cmdline\n'
#: Entry point of vllm-dflash, which prints the command line, including the key.
ENTRY_POINT = """\
#!/bin/bash
CMD=(vllm serve /model --port 8000)
[ -n "${VLLM_API_KEY:-}" ] && CMD+=(--api-key "$VLLM_API_KEY")
echo "Starting: ${CMD[*]}"
exec "${CMD[@]}"
"""


class Container:
    """A folder in place of an image."""

    def __init__(self, folder: Path) -> None:
        self.place = folder
        self.secrets = folder / "engine.env"
        for name, text in (("bin/vllm", VLLM), ("entry.sh", ENTRY_POINT)):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def start(self, *, variables: bool) -> subprocess.CompletedProcess[str]:
        entrypoint = str(self.place / "entry.sh") if variables else "vllm"
        parts = container_entrypoint(entrypoint, program="vllm" if variables else None)
        parts = [word.replace(SECRETS_MOUNT, str(self.secrets)) for word in parts]
        environment = {"PATH": f"{self.place}/bin:/usr/bin:/bin", "TMPDIR": str(self.place)}
        arguments = [] if variables else ["serve", "/model", "--a", "two words", "$(id)"]
        return subprocess.run(
            [*parts, *arguments], env=environment, capture_output=True, text=True, timeout=20,
            check=False,
        )  # fmt: skip


@pytest.fixture
def container(tmp_path: Path) -> Container:
    result = Container(tmp_path)
    result.secrets.write_text(f"VLLM_API_KEY={KEY}\n")
    return result


@pytest.mark.parametrize("variables", [False, True])
def test_vllm_has_the_key_and_its_command_line_does_not(
    container: Container, *, variables: bool
) -> None:
    done = container.start(variables=variables)
    assert done.returncode == 0, done.stderr
    *before, key, command = done.stdout.splitlines()
    assert key == f"key={KEY}"
    assert "vllm serve /model" in command
    assert KEY not in command + "".join(before) + done.stderr
    if not variables:
        assert command.endswith("--a two words $(id) ")


@pytest.mark.parametrize("variables", [False, True])
def test_the_engine_does_not_start_without_the_key_file(
    container: Container, *, variables: bool
) -> None:
    """An engine without a key would answer every client."""
    container.secrets.unlink()
    done = container.start(variables=variables)
    assert done.returncode != 0
    assert "key=" not in done.stdout


@pytest.mark.parametrize("variables", [False, True])
@pytest.mark.parametrize(
    "key", ["$(touch hit)", "a'b\"c`touch hit`", "x; touch hit", "a==", "a\\nb"]
)
def test_a_key_is_text_and_never_run(container: Container, key: str, *, variables: bool) -> None:
    container.secrets.write_text(f"VLLM_API_KEY={key}\n")
    assert f"key={key}\n" in container.start(variables=variables).stdout
    assert not [*container.place.rglob("hit"), *Path().glob("hit")]
