"""Secrets from commands: without a shell, with bounded output, and in no error message."""

import base64
import json
import shlex
import sys
from pathlib import Path

import pytest

from sparkwright.config import secret_commands
from sparkwright.config.parse import parse_settings
from sparkwright.config.secret_commands import line, printed
from sparkwright.config.secrets import VARIABLE, api_key
from sparkwright.config.settings import HostSettings
from sparkwright.findings.user_error import UserError
from sparkwright.resolve.credentials import account, hub_token
from tests.tables import Tables

cases = Tables(__file__)

KEY = "sk-the-key-of-a-password-store-0123456789"
SETTING = "api_key_command"


def python(program: str, *arguments: str) -> tuple[str, ...]:
    """A command that runs Python code."""
    return (sys.executable, "-c", program, *arguments)


def refused(command: tuple[str, ...]) -> str:
    """Message about a command without a secret."""
    with pytest.raises(UserError) as error:
        line(command, SETTING)
    assert f"{SETTING}: {shlex.join(command)}"[:60] in str(error.value)
    return str(error.value)


def test_a_command_prints_key_token_and_account(tmp_path: Path) -> None:
    assert api_key(python(f"print({KEY!r})"), {}).value == KEY
    token = hub_token(python("print('  hf_token  ')"))
    assert token
    assert token.value == "hf_token"
    auth = {"auths": {"registry.lab": {"auth": base64.b64encode(b"me:word").decode()}}}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(auth, indent=2))
    assert account(("cat", str(file)), "https://registry.lab") == "me:word"


def test_the_environment_overrides_the_command(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    assert api_key(("touch", str(ran)), {VARIABLE: KEY}).value == KEY
    assert not ran.exists()


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    made = tmp_path / "made"
    arguments = ("echo", f"$(touch {made})", f"; touch {made}", f"`touch {made}`", "| cat")
    assert line(arguments, SETTING) == " ".join(arguments[1:])
    assert not made.exists()


def test_a_secret_command_runs_once_with_empty_standard_input(tmp_path: Path) -> None:
    count = tmp_path / "count"
    command = python(
        "import sys; open(sys.argv[1], 'a').write('x'); print(repr(sys.stdin.read()))", str(count)
    )
    assert [line(command, SETTING) for _ in range(3)] == ["''"] * 3
    assert count.read_text() == "x"


def test_proc_shows_the_written_command_and_no_secret() -> None:
    own = python("print(open('/proc/self/cmdline').read().replace(chr(0), ' '))")
    assert line(own, SETTING) == " ".join(own).strip()
    files = "[open(f'/proc/self/{f}').read() for f in ('cmdline', 'environ')]"
    assert line(python(f"print('sk-' + 'x' * 30 in ''.join({files}))"), SETTING) == "False"


@cases("program", "text")
def test_output_that_is_not_a_secret_is_refused(program: str, text: str) -> None:
    message = refused(python(program))
    assert text in message.replace(program, "")
    assert KEY not in message.replace(repr(program), "").replace(shlex.quote(program), "")


def test_an_error_shows_standard_error_without_the_secret(tmp_path: Path) -> None:
    program = tmp_path / "store"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"print({KEY!r}); print('locked, not {KEY}\\x1b[2J\\rso', file=sys.stderr); sys.exit(2)\n"
    )
    program.chmod(0o700)
    message = refused((str(program),))
    assert "exit code 2: locked, not (secret) [2J so" in message
    assert KEY not in message
    assert "\x1b" not in message


def test_a_flood_on_standard_error_does_not_block_the_command() -> None:
    program = "import sys; sys.stderr.write('y' * 65000 + 'the end'); print('k' * 20)"
    assert line(python(program), SETTING) == "k" * 20


def test_an_endless_secret_command_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_commands, "TIMEOUT", 0.3)
    assert "took longer than 0 s" in refused(python("import time; time.sleep(60)"))


def test_a_missing_program_is_named() -> None:
    assert "can't be started: No such file or directory" in refused(("no-such-store", "show"))


def test_an_unusable_key_of_a_command_is_not_shown() -> None:
    with pytest.raises(UserError, match="api_key_command: echo") as error:
        api_key(("echo", "two words of a key that has a blank"), {})
    assert "not a usable API key" in str(error.value)
    with pytest.raises(UserError, match="registry_auth_command: echo nothing"):
        account(("echo", "nothing"), "https://registry.lab")


@pytest.mark.parametrize("mistake", ["pass show lab/key", [], [""], [1], {"pass": "show"}])
@pytest.mark.parametrize("key", ["api_key", "hub_token", "registry_auth"])
def test_a_command_is_a_list_of_words(key: str, mistake: object) -> None:
    with pytest.raises(UserError, match=f"{key}_command"):
        parse_settings("a", {"services": {}, f"{key}_command": mistake}, lambda _: "all.py")


def test_a_command_overrides_the_file() -> None:
    settings = HostSettings.model_validate(
        {
            "services": {},
            "hub_token_file": "token",
            **{
                f"{key}_command": ["echo", key] for key in ("api_key", "hub_token", "registry_auth")
            },
        }
    )
    assert settings.api_key_source == ("echo", "api_key")
    assert settings.hub_token_source == ("echo", "hub_token")
    assert settings.registry_auth_source == ("echo", "registry_auth")


def test_a_document_from_a_command_may_have_several_lines() -> None:
    assert printed(("printf", "a\\nb\\n"), "registry_auth_command") == "a\nb"
