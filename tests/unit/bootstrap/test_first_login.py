"""The first login to a box: by the system's own ssh, against real and hostile SSH servers."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
import pytest

from sparkwright.bootstrap.first_login import Ask, Login
from sparkwright.findings.user_error import UserError
from tests.tables import Tables
from tests.unit.bootstrap.ssh_server import PASSWORD, Box, box, connection

cases = Tables(__file__)

PROMPT = "Password of me on box: "
AGAIN = f"Wrong. {PROMPT}"
JUMPS, JUMP_PROMPT = "another secret", "Password of me on jump, a jump host to box: "


@dataclass
class Somebody:
    """A user: the answers to prompts, and the prompts that were shown."""

    accepting: bool = True
    passwords: tuple[str, ...] = (PASSWORD,)
    asked: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = bool

    def __call__(self, question: str, shown: bool) -> str:
        self.asked.append(question)
        if shown:
            return "yes" if self.accepting else "no"
        self.meanwhile()
        number = sum("\n" not in item for item in self.asked) - 1
        return self.passwords[min(number, len(self.passwords) - 1)]


@dataclass
class Person:
    """A user with a password for the jump host, and another password for the box."""

    asked: list[str] = field(default_factory=list)

    def __call__(self, question: str, shown: bool) -> str:
        self.asked.append("host key" if shown else question)
        return "yes" if shown else JUMPS if "jump" in question else PASSWORD


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def _login(folder: Path, server: Box, person: Ask | None, more: str = "") -> Login:
    return Login("box", connection(folder, server.port, more), person)


def _refused(login: Login) -> str:
    with pytest.raises(UserError) as error:
        login.open()
    return str(error.value)


def test_a_key_of_the_user_is_installed_once_beside_other_keys(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                    str(tmp_path / "id_ed25519")], check=True)  # fmt: skip
    with box(tmp_path) as server:
        (server.home / ".ssh").mkdir()
        (server.home / ".ssh/authorized_keys").write_text("ssh-rsa AAAA somebody")
        (server.home / "passwordless").touch()
        login = _login(tmp_path, server, Somebody())
        login.open()
        lines = (server.home / ".ssh/authorized_keys").read_text().splitlines()
        assert lines == ["ssh-rsa AAAA somebody", (tmp_path / "id_ed25519.pub").read_text().strip()]
        assert login.made_key is None


def test_the_password_is_prompted_for_three_times_at_most(tmp_path: Path) -> None:
    with box(tmp_path) as server:
        person = Somebody(passwords=("wrong", "wrong again", PASSWORD))
        _login(tmp_path, server, person).open()
        assert person.asked[1:] == [PROMPT, AGAIN, AGAIN]
        (server.home / ".ssh/authorized_keys").unlink()
        person = Somebody(passwords=("wrong",))
        assert "the password of me was wrong each time" in _refused(
            _login(tmp_path, server, person)
        )
        assert len(person.asked) == 3


def test_sudo_may_take_another_password_or_no_password(tmp_path: Path) -> None:
    with box(tmp_path) as server:
        (server.home / "sudo-password").write_text("for sudo\n")
        person = Somebody(passwords=(PASSWORD, "for sudo"))
        login = _login(tmp_path, server, person)
        login.open()
        assert person.asked[1:] == [PROMPT, "Wrong. Password of me on box, for sudo: "]
        assert login.password is not None
        assert login.password.value == "for sudo"
        assert "sudo asks me" in _refused(_login(tmp_path, server, None))
        (server.home / "bin/sudo").write_text(
            "#!/bin/sh\necho me is not in the sudoers file >&2; exit 1"
        )
        assert "me can't become root on the host" in _refused(_login(tmp_path, server, Somebody()))


def test_a_keyboard_interactive_login_accepts_a_password(tmp_path: Path) -> None:
    with box(tmp_path, methods="publickey,keyboard-interactive") as server:
        _login(tmp_path, server, Somebody()).open()
        assert server.passwords == [PASSWORD]


@cases("settings", "message")
def test_a_method_without_a_password_gets_no_password(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    with box(tmp_path, **settings) as server:
        person = Somebody()
        assert message in _refused(_login(tmp_path, server, person))
        assert len(person.asked) == 1
        assert not any(server.passwords)


def test_without_a_terminal_no_prompt_appears(tmp_path: Path) -> None:
    with box(tmp_path) as server:
        assert "host key is unknown" in _refused(_login(tmp_path, server, None))
        _refused(_login(tmp_path, server, Somebody(passwords=("wrong",))))
        assert "no terminal for a password" in _refused(_login(tmp_path, server, None))


def test_a_locked_key_is_reported_before_the_password_prompt(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "locked", "-f",
                    str(tmp_path / "id_ed25519")], check=True)  # fmt: skip
    with box(tmp_path) as server:
        person = Somebody()
        assert "has a passphrase" in _refused(_login(tmp_path, server, person))
        assert len(person.asked) == 1


# Attacks


def test_a_host_key_that_was_refused_gets_no_password(tmp_path: Path) -> None:
    with box(tmp_path, methods="password,keyboard-interactive") as server:
        person = Somebody(accepting=False)
        login = _login(tmp_path, server, person)
        assert "you did not accept the box's host key" in _refused(login)
        assert len(person.asked) == 1
        # A later prompt with the same text gets no password either.
        for prompt in (f"{login.whose}'s password: ", f"({login.whose}) Password: "):
            assert login._answer(prompt, True) is None
        assert server.passwords == []
        assert not (tmp_path / "known_hosts").exists()


def test_a_man_in_the_middle_with_another_key_is_refused(tmp_path: Path) -> None:
    with box(tmp_path) as server:
        _login(tmp_path, server, Somebody()).open()
        server.key = paramiko.ECDSAKey.generate()
        server.passwords.clear()
        person = Somebody()
        text = _refused(_login(tmp_path, server, person))
        assert "a different host key than before" in text
        assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in text
        assert (person.asked, server.passwords) == ([], [])


def test_only_this_hosts_own_prompt_gets_the_password(tmp_path: Path) -> None:
    """A jump host's prompt is refused, since it can imitate the box's prompts."""
    login = Login("box", connection(tmp_path, 22), Somebody())
    assert login.whose == "me@127.0.0.1"
    for prompt in (
        "me@jump's password: ", "(me@jump) me@127.0.0.1's password: ",
        "(me@127.0.0.1) Password for root@bank: \nPassword: ", "(me@127.0.0.1) One-time code: ",
        "Enter passphrase for key '/home/me/.ssh/id_ed25519': ", "me@127.0.0.1's old password: ",
    ):  # fmt: skip
        assert login._answer(prompt, True) is None, prompt
    assert login._answer("me@127.0.0.1's password: ", False) is None
    assert login._answer("me@127.0.0.1's password: ", True) == PASSWORD


@contextmanager
def _behind(folder: Path, **jump: Any) -> Iterator[tuple[Login, Person, Box, Box]]:
    """A box behind a jump host with another password; ssh's prompts show the same name for both."""
    person = Person()
    with box(folder / "jump", password=JUMPS, **jump) as first, box(folder) as server:
        config = (
            f"Host 127.0.0.1\n ProxyJump jump\nHost jump\n HostName 127.0.0.1\n User me\n"
            f" Port {first.port}\n"
        )
        yield _login(folder, server, person, config), person, first, server


def test_jump_hosts_that_lead_to_each_other_end_with_a_message(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(UserError):
        Login("a", {"ssh_config_file": str(config)}, None).open()


def test_a_password_prompt_names_its_jump_host(tmp_path: Path) -> None:
    with _behind(tmp_path) as (login, person, jump, server):
        login.open()
        assert person.asked == ["host key", JUMP_PROMPT, "host key", PROMPT]
        assert (jump.passwords, server.passwords) == ([JUMPS], [PASSWORD])
        assert login.made_key == tmp_path / "id_ed25519"
        for each in (jump, server):
            installed = (each.home / ".ssh/authorized_keys").read_text()
            assert installed == (tmp_path / "id_ed25519.pub").read_text()


@pytest.mark.parametrize("methods", ["publickey,password", "publickey,keyboard-interactive"])
def test_a_jump_host_that_imitates_the_box_gets_no_password(tmp_path: Path, methods: str) -> None:
    """The jump host accepts the key once, but not for the connection to the box."""
    with _behind(tmp_path, keys_for=2, methods=methods) as (login, person, jump, server):
        _refused(login)
        assert person.asked == ["host key", JUMP_PROMPT]
        assert {*jump.passwords} - {""} == {JUMPS}
        assert server.passwords == []


def test_the_agent_is_never_forwarded_and_a_banner_is_not_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;owned\x07 me@127.0.0.1's password: "
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "a")], stdout=-3, stderr=-3)
    try:
        with box(tmp_path, banner=evil) as server:
            _login(
                tmp_path, server, Somebody(), f"ForwardAgent yes\nIdentityAgent {tmp_path}/a"
            ).open()
            assert server.agents == 0
    finally:
        agent.kill()
        agent.wait()
    assert "\x1b" not in "".join(capfd.readouterr())


def test_the_password_is_in_no_argument_environment_or_file(tmp_path: Path) -> None:
    """No process of this machine shows the password, from the prompt to the end."""
    seen: list[bytes] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ"):
                    try:
                        seen.append((process / name).read_bytes())
                    except OSError:
                        continue
            time.sleep(0.01)

    with box(tmp_path) as server:
        thread = threading.Thread(target=watch)
        thread.start()
        try:
            _login(tmp_path, server, Somebody(meanwhile=lambda: time.sleep(1))).open()
        finally:
            over.set()
            thread.join()
    everything = b"\0".join(seen)
    assert b"SSH_ASKPASS_REQUIRE=force" in everything  # ssh is among the examined processes
    assert PASSWORD.encode() not in everything
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if PASSWORD in path.read_text(errors="replace")] == [
        "sudo-password"
    ]
    assert not [item for item in os.environ.values() if PASSWORD in item]
