"""An SSH server on the loopback, for the system's own ssh: a box as delivered.

A shell of this machine runs ssh's commands in the box's own home directory, with a sudo that
requires a password.
"""

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, OPEN_SUCCEEDED
from paramiko.server import InteractiveQuery

PASSWORD = "a-secret-of-hers"
#: Fake of sudo, which prompts for a password until the right password was entered once.
_SUDO = """#!/bin/sh
[ "$*" = "-k -n true" ] && exec test -e "$HOME/passwordless"
[ "$1 $2 $3" = "-k -S -p" ] || exit 9
echo asked >> "$HOME/sudo-asked"
read -r word; [ "$word" = "$(cat "$HOME/sudo-password")" ]
"""


@dataclass
class Box(paramiko.ServerInterface):
    """A box and its events.

    Attributes:
        home: home of the box's user; the server reads ``.ssh/authorized_keys`` there.
        methods: accepted methods: ``publickey``, ``password``, ``keyboard-interactive``.
        prompts: prompts of the keyboard-interactive login.
        banner: text before the login.
        password: accepted password.
        passwords: every received password.
        keys_for: number of commands after which the box rejects keys.
    """

    home: Path
    methods: str = "publickey,password"
    prompts: tuple[str, ...] = ("Password: ",)
    banner: str = ""
    password: str = PASSWORD
    passwords: list[str] = field(default_factory=list)
    keys_for: float = float("inf")
    _targets: dict[int, tuple[str, int]] = field(default_factory=dict)
    agents: int = 0
    key: paramiko.PKey = field(default_factory=lambda: paramiko.ECDSAKey.generate())
    port: int = 0

    def get_allowed_auths(self, username: str) -> str:
        return self.methods

    def get_banner(self) -> tuple[str | None, str | None]:
        return (self.banner, "en") if self.banner else (None, None)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        file = self.home / ".ssh/authorized_keys"
        keys = file.read_text() if file.exists() else ""
        ok = key.get_base64() in keys and self.keys_for > 0
        return self._result("publickey", ok=ok)

    def check_auth_password(self, username: str, password: str) -> int:
        self.passwords.append(password)
        return self._result("password", ok=password == self.password)

    def check_auth_interactive(self, username: str, submethods: str) -> Any:
        if "keyboard-interactive" not in self.methods:
            return AUTH_FAILED
        return InteractiveQuery("", "", *self.prompts)

    def check_auth_interactive_response(self, responses: Any) -> int:
        self.passwords += responses
        return self._result("keyboard-interactive", ok=list(responses) == [self.password])

    def _result(self, method: str, *, ok: bool) -> int:
        ok = ok and method in self.methods
        return AUTH_SUCCESSFUL if ok else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        self._targets[chanid] = destination
        return OPEN_SUCCEEDED

    def forward(self, transport: paramiko.Transport) -> None:
        """Act as a jump host: forward connections to other hosts, until the connection ends."""
        channels = []  # Python closes a socket without a reference
        while transport.is_active():
            channels.append(channel := transport.accept(1))
            if channel is None or channel.chanid not in self._targets:
                continue
            other = socket.create_connection(self._targets.pop(channel.chanid))
            for pair in ((channel, other), (other, channel)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()

    def check_channel_forward_agent_request(self, channel: paramiko.Channel) -> bool:
        self.agents += 1
        return True

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.keys_for -= 1
        threading.Thread(target=self._execute, args=(channel, command), daemon=True).start()
        return True

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        environment = {"HOME": str(self.home), "PATH": f"{self.home}/bin:/usr/bin:/bin"}
        with suppress(OSError, EOFError, paramiko.SSHException):
            done = subprocess.run(
                ["sh", "-c", command.decode()], cwd=self.home, env=environment,
                input=channel.makefile("rb").read(), capture_output=True, timeout=20, check=False,
            )  # fmt: skip
            channel.sendall(done.stdout)
            channel.sendall_stderr(done.stderr)
            channel.send_exit_status(done.returncode)
            channel.close()


def _copy(source: Any, target: Any) -> None:
    with suppress(OSError, EOFError), closing(target):
        while piece := source.recv(65536):
            target.sendall(piece)


@contextmanager
def box(folder: Path, **settings: Any) -> Iterator[Box]:
    """A box that answers until the block ends; sudo accepts the login's password."""
    home = folder / "home of the box"
    (home / "bin").mkdir(parents=True)
    (home / "sudo-password").write_text(f"{settings.get('password', PASSWORD)}\n")
    for name, text in {"sudo": _SUDO, "id": "#!/bin/sh\necho 1000\n"}.items():
        (home / "bin" / name).write_text(text)
        (home / "bin" / name).chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = Box(home, port=listener.getsockname()[1], **settings)
        thread = threading.Thread(target=_serve, args=(listener, result), daemon=True)
        thread.start()
        yield result
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()  # the next box's socket may get the same number


def _serve(listener: socket.socket, server: Box) -> None:
    transports = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            transport = paramiko.Transport(connection)
            transport.add_server_key(server.key)
            with suppress(OSError, EOFError, paramiko.SSHException):
                transport.start_server(event=threading.Event(), server=server)
                threading.Thread(target=server.forward, args=(transport,), daemon=True).start()
            transports.append(transport)


def connection(folder: Path, port: int, more: str = "") -> dict[str, Any]:
    """Data of a host at a port, for a user with all files in a folder."""
    config = folder / "ssh_config"
    config.write_text(
        f"{more}\nHost *\nIdentityFile {folder}/id_ed25519\nIdentityAgent none\n"
        f"UserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile none\n"
    )
    return {"ssh_hostname": "127.0.0.1", "ssh_port": port, "ssh_user": "me",
            "ssh_config_file": str(config)}  # fmt: skip
