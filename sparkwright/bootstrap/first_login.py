"""First login to a box with the user's own ssh: host key, password, and the user's key.

The user's ssh_config, agent and jump hosts apply. ssh asks once to confirm the host key, and
refuses another key. A password answers only the password prompt of this host, from the ssh that
connects to the host. The password is not stored: sparkwright installs the user's key with it, and
tries it for sudo. The login to a jump host comes first, in the same way, with the jump host's own
password.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkwright.bootstrap.askpass import run
from sparkwright.config.secrets import Secret
from sparkwright.config.ssh import ssh
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.text.visible import cut, visible

_MESSAGES = Messages(__file__)
#: Number of prompts for a password.
TRIES = 3
_ACCEPTS = re.compile(r"\(yes/no(/\[fingerprint\])?\)\? *$")
#: A password prompt of PAM. A prompt for a second factor does not match, and gets no answer.
_PAM = re.compile(r"[Pp]assword( for [^:]{1,100})?: *")
#: Options that show no banner and keep no master connection: pyinfra logs in by itself, with a
#: key.
_ALONE = {"BatchMode": "no", "StrictHostKeyChecking": "ask", "LogLevel": "ERROR",
          "ControlMaster": "no", "ControlPath": "none", "PermitLocalCommand": "no",
          "NumberOfPasswordPrompts": str(TRIES)}  # fmt: skip
_BY_KEY = {"PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no"}
_BY_PASSWORD = {"PubkeyAuthentication": "no", "PasswordAuthentication": "yes",
                "KbdInteractiveAuthentication": "yes",
                "PreferredAuthentications": "password,keyboard-interactive"}  # fmt: skip
#: Largest number of jump hosts in a chain; and pattern of the last jump host,
#: ``[USER@]HOST[:PORT]``.
_JUMPS = 8
_JUMP = re.compile(
    r"((?P<ssh_user>.+)@)?(\[(?P<address>.+)\]|(?P<ssh_hostname>[^:]+))(:(?P<ssh_port>\d+))?"
)
_LOOK = "id -u; command -v sudo >/dev/null || exit 3; sudo -k -n true 2>/dev/null || exit 4"
_SUDO = "LC_ALL=C sudo -k -S -p '' true"
_INSTALL = """umask 077; key=$(cat) && mkdir -p .ssh && touch .ssh/authorized_keys || exit 1
grep -qxF -e "$key" .ssh/authorized_keys && exit 0
[ -z "$(tail -c 1 .ssh/authorized_keys)" ] || echo >> .ssh/authorized_keys
printf '%s\\n' "$key" >> .ssh/authorized_keys || exit 1
! command -v restorecon >/dev/null || restorecon -F .ssh .ssh/authorized_keys"""


#: Function that asks the user a question, with or without echo, and returns the answer.
Ask = Callable[[str, bool], str]


@dataclass
class Login:
    """Login to a box.

    Attributes:
        name, data: name and data of the host, as an inventory has them.
        ask: function that prompts the user; None without a terminal.
        password: the password that the box accepted, for the login or for sudo.
        made_key: the private key that was made for a user without a key.
        jumps: the jump hosts to the box, as ssh's ProxyJump; without ssh_config's jump hosts.
        beyond: the host behind a jump host.
        depth: number of hosts behind this jump host.
    """

    name: str
    data: Mapping[str, Any]
    ask: Ask | None
    password: Secret | None = None
    made_key: Path | None = None
    jumps: str = ""
    beyond: str = ""
    depth: int = 0
    _typed: list[str] = field(default_factory=list, repr=False)
    _refused: bool = False

    @cached_property
    def settings(self) -> dict[str, list[str]]:
        """ssh's own settings for this box, by option. Raises UserError."""
        code, out, err = run(ssh(self.name, self.data, "-G", **self._way))
        if code:
            raise self._refusal("no-ssh-settings", reason=_last(err))
        options: dict[str, list[str]] = {}
        for line in out.splitlines():
            key, _, value = line.partition(" ")
            options.setdefault(key, []).append(value)
        return options

    @property
    def _way(self) -> dict[str, str]:
        return {"ProxyJump": self.jumps} if self.jumps else {}

    @property
    def user(self) -> str:
        """The user who logs in."""
        return self.settings["user"][0]

    @property
    def address(self) -> str:
        """Address that ssh connects to, by name or number."""
        return self.settings["hostname"][0]

    @property
    def whose(self) -> str:
        """User and host, as in ssh's prompts."""
        host = self.settings.get("hostkeyalias", [self.address])[0].lower()
        return f"{self.user}@{host}"

    def open(self) -> None:
        """Ensure that the box accepts the user's key, and that the box's user can become root.

        Raises:
            UserError: the login or sudo fails; the message has the reason and the remedy.
        """
        code, out = self._by_key(_LOOK)
        if code == 0 or "0" in out.splitlines():
            self.password = None  # no later step needs the password
        elif code == 4:
            self._become_root()
        else:
            raise self._refusal("no-sudo", user=self.user)

    def _by_key(self, script: str) -> tuple[int, str]:
        """Run a script on the box and return exit code and output; install a key if needed."""
        self._open_jump()
        code, out, err = self._run(script, _BY_KEY)
        if code == 255:
            if f"{self.whose}: Permission denied" not in err:
                raise self._unreached(err)
            self._install(_last(err))
            code, out, err = self._run(script, _BY_KEY)
            if code == 255:
                raise self._unreached(err, "key-not-taken")
        return code, out

    def _open_jump(self) -> None:
        """Ensure that the last jump host also accepts a key: a deploy logs in to the jump host with
        a key only.
        """
        before, _, last = self.settings.get("proxyjump", ["none"])[0].rpartition(",")
        # ssh itself reports jump hosts that lead to each other.
        if last == "none" or self.depth == _JUMPS or not (match := _JUMP.fullmatch(last)):
            return
        parts = {key: value for key, value in match.groupdict().items() if value}
        address = parts.setdefault("ssh_hostname", parts.pop("address", ""))
        file = {key: self.data[key] for key in ("ssh_config_file",) if key in self.data}
        jump = Login(
            address, {**file, **parts}, self.ask,
            jumps=before, beyond=self.name, depth=self.depth + 1,
        )  # fmt: skip
        jump._by_key("true")
        self.made_key = jump.made_key

    def _unreached(self, err: str, message: str = "not-reached") -> UserError:
        """Return the error of a connection that ssh ended."""
        if self._refused:
            return self._refusal("host-key-refused" if self.ask else "host-key-unknown")
        if "REMOTE HOST IDENTIFICATION HAS CHANGED" in err:
            port = self.settings["port"][0]
            entry = self.address if port == "22" else f"[{self.address}]:{port}"
            return self._refusal("host-key-changed", entry=shlex.quote(entry))
        return self._refusal(message, reason=_last(err))

    def _install(self, denied: str) -> None:
        """Log in by password, and install the user's key.

        Args:
            denied: ssh's last line, which ends with the authentication methods that the box
                accepts.
        """
        if not re.search("password|keyboard-interactive", methods := denied.rpartition("(")[2]):
            raise self._refusal("no-password-login", methods=methods.rstrip(")."))
        if self.ask is None:
            raise self._refusal("no-login-key", user=self.user, address=self.address)
        code, _, err = self._run(_INSTALL, _BY_PASSWORD, f"{self._public_key()}\n")
        if code == 255 and len(self._typed) >= TRIES:
            raise self._refusal("wrong-password", user=self.user)
        if code:
            raise self._unreached(err)
        self.password = Secret(self._typed[-1]) if self._typed else None

    def _become_root(self) -> None:
        """Find sudo's password: the login's password, or another password that the user types."""
        if self.ask is None:
            raise self._refusal("sudo-asks", user=self.user)
        for password in self._passwords():
            code, _, err = self._run(_SUDO, _BY_KEY, f"{password}\n")
            if code == 0:
                self.password = Secret(password)
                return
            if re.search(r"not in the sudoers|not allowed to|may not run|can't do that", err):
                raise self._refusal("no-sudo", user=self.user)
            if code == 255:
                raise self._unreached(err)
        raise self._refusal("wrong-password", user=self.user)

    def _passwords(self) -> Iterator[str]:
        if self.password:
            yield self.password.value
        for turn in range(TRIES):
            yield self._password(", for sudo", again=turn > 0 or self.password is not None)

    def _password(self, purpose: str = "", *, again: bool) -> str:
        assert self.ask is not None
        prefix = "Wrong. " if again else ""
        purpose = f", a jump host to {self.beyond}" if self.beyond else purpose
        return self.ask(f"{prefix}Password of {self.user} on {self.name}{purpose}: ", False)

    def _answer(self, prompt: str, own: bool) -> str | None:
        """Return the answer to a prompt of ssh; None after a refusal.

        Args:
            own: whether the prompt comes from the ssh to this host. A prompt from ssh to a jump
                host, which may imitate the prompts of this host, gets no password.
        """
        if self._refused:
            return None
        if _ACCEPTS.search(prompt):
            about = prompt.strip().rpartition("\n")[0]
            question = f"{about}\nIs this the host's own key? (yes/no) "
            answer = self.ask(question, True) if self.ask else ""
            self._refused = answer.strip().lower() not in ("y", "yes")
            return "no" if self._refused else "yes"
        user, _, host = self.whose.rpartition("@")
        mine = prompt.rstrip() == f"{user[:30]}@{host[:128]}'s password:"
        own_words = prompt.removeprefix(f"({self.whose}) ")
        mine |= own_words != prompt and _PAM.fullmatch(own_words) is not None
        if not (mine and own) or self.ask is None or len(self._typed) >= TRIES:
            return None
        self._typed.append(self._password(again=bool(self._typed)))
        return self._typed[-1]

    def _run(
        self, script: str, options: Mapping[str, str], stdin: str = ""
    ) -> tuple[int, str, str]:
        command = ssh(self.name, self.data, "-T", **_ALONE, **self._way, **options)
        return run([*command, shlex.join(("sh", "-c", script))], self._answer, stdin)

    def _public_key(self) -> str:
        """Return a public key whose private key needs no passphrase; make a pair if needed."""
        paths = [Path(name).expanduser() for name in self.settings.get("identityfile", ())]
        publics = [path.with_name(f"{path.name}.pub") for path in paths]
        blobs = {path.read_text().split()[1] for path in publics if path.is_file()}
        alone = self.settings.get("identitiesonly", ["no"])[0] == "yes"
        code, out, _ = run(["ssh-add", "-L"])
        for line in out.splitlines() if code == 0 else ():
            if not alone or (line.split()[1:2] and line.split()[1] in blobs):
                return line.strip()
        existing = [path for path in paths if path.is_file()]
        for path in existing:
            code, out, _ = run(["ssh-keygen", "-y", "-P", "", "-f", str(path)])
            if code == 0:
                return out.strip()
        if existing:
            raise self._refusal("locked-key", key=shlex.quote(str(existing[0])))
        usual = next((path for path in paths if path.name == "id_ed25519"), None)
        key = usual or next(iter(paths), Path.home() / ".ssh/id_ed25519")
        key.parent.mkdir(0o700, parents=True, exist_ok=True)
        code, _, err = run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
        if code:
            raise self._refusal("key-not-made", key=key, reason=_last(err))
        self.made_key = key
        return key.with_name(f"{key.name}.pub").read_text().strip()

    def _refusal(self, message: str, **facts: Any) -> UserError:
        return _MESSAGES.refusal(message, "ssh", self.name, name=self.name, **facts)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return visible(cut(lines[-1], 200)) if lines else "ssh ended without a message"
