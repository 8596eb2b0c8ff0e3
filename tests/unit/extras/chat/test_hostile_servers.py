"""`sparkwright chat` protects terminal and key from a hostile model, other servers and users."""

import datetime as dt
import ssl
import stat
from pathlib import Path

import pytest

from sparkwright.config.ssh import ssh
from sparkwright.text.visible import visible_prose
from sparkwright.tls.authority import authority, host_certificate
from tests.unit.extras.chat.model import Model, speaking
from tests.unit.extras.chat.test_chat import SSH, with_ssh
from tests.unit.security.test_hostile_answers import EVIL
from tests.unit.site_terminal import KEY, chat, environment, terminal, written

NOW = dt.datetime.now(dt.UTC)


def test_an_answer_sends_no_control_sequences(site: Path, model: Model) -> None:
    """The test covers the answer, the reasoning, and a sequence in two pieces."""
    model.deltas = [{"reasoning": EVIL}, {"content": "\x1b"}, {"content": f"[2J{EVIL}"}]
    with terminal(site, "chat", "--prompt", "x") as shown:
        assert shown.ended() == 0
    # The output has no escape sequence except sparkwright's two styles.
    message = shown.got.replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\r\n", "\n")
    for got in (message, chat(site, "--prompt", "x").stdout):
        assert not any(item in got for item in "\x1b\x07\x9b\r\u202e\u200b\x7f")
        assert r"\x1b[2J" in got


def test_code_and_scripts_stay_readable() -> None:
    text = "def f():\n\treturn '👩‍🔬 می‌خواهم'\n"
    assert visible_prose(text) == text


def test_the_key_is_in_no_argument_list_and_no_text_is_kept(inner_site: Path, model: Model) -> None:
    """ssh's environment lacks the key too, since other users of the controller can read its
    arguments and environment.
    """
    with_ssh(inner_site, SSH.replace("import os, socket", "import os\n"
        "open('seen.txt', 'a').write(open('/proc/self/cmdline').read() + str(os.environ)"
        " + open(f'/proc/{os.getppid()}/cmdline').read())\nimport socket"))  # fmt: skip
    with terminal(inner_site, "chat") as shown:
        for number, typed in enumerate(("A private prompt\n", "\x04"), 1):
            shown.until("> ", number)
            shown.type(typed)
        assert shown.ended() == 0
    seen = (inner_site / "seen.txt").read_text()
    assert all((word in seen) == (word != KEY) for word in ("192.0.2.1", "chat", KEY))
    assert model.seen[0][2] == f"Bearer {KEY}"
    home = Path(environment(inner_site)["HOME"])
    assert [path for path in home.rglob("*") if path.is_file()] == []
    for path in filter(Path.is_file, inner_site.rglob("*")):
        assert "A private prompt" not in path.read_text(), path
        assert KEY not in path.read_text() or stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_that_other_users_can_read_is_not_used(site: Path, model: Model) -> None:
    (site / ".sparkwright/api_key").chmod(0o644)
    done = chat(site, "--prompt", "x")
    assert done.exit_code == 2
    assert "other users can read the API key" in done.stderr
    assert model.seen == []


def test_a_redirect_gets_no_key(site: Path, model: Model) -> None:
    with speaking(Model()) as other:
        model.redirect = f"http://127.0.0.1:{other.port}"
        done = chat(site, "--prompt", "x")
    assert done.exit_code == 1
    assert "redirects to another address, and the API key is not sent there" in done.stderr
    assert other.seen == []


def test_chat_uses_no_proxy_of_the_environment_and_no_netrc(site: Path, model: Model) -> None:
    netrc = Path(environment(site)["HOME"], ".netrc")
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    netrc.chmod(0o600)
    with speaking(Model()) as proxy:
        at = f"http://127.0.0.1:{proxy.port}"
        done = chat(site, "--prompt", "x", HTTP_PROXY=at, http_proxy=at, ALL_PROXY=at)
    assert done.exit_code == 0, done.stderr
    assert proxy.seen == []
    assert {shown for _, _, shown, _ in model.seen} == {f"Bearer {KEY}"}


def test_a_local_listener_is_not_taken_for_a_hosts_loopback_service(
    inner_site: Path, model: Model
) -> None:
    """The service listens on its host's 127.0.0.1; a program at this port of the controller gets no
    key.
    """
    with_ssh(inner_site, "#!/bin/sh\nexit 255\n")
    assert chat(inner_site, "--prompt", "x").exit_code == 1
    assert model.seen == []


def _secured(site: Path, signer: Path, *names: str) -> ssl.SSLContext:
    """Turn TLS on in the site; return the TLS context of a server with a certificate of a CA."""
    (site / "group_data").mkdir()
    (site / "group_data/all.py").write_text('tls = "own"\n')
    authority(NOW, site / ".sparkwright/ca")
    pem = site / "server.pem"
    pem.touch(0o600)
    pem.write_text(host_certificate(authority(NOW, signer, names=names), "server", names, NOW))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


@pytest.mark.parametrize("way", ["network", "ssh"])
@pytest.mark.parametrize("attack", ["none", "another CA", "another name"])
def test_a_server_with_another_certificate_is_refused(
    tmp_path: Path, attack: str, way: str
) -> None:
    model = Model()
    with speaking(Model()) as probe:  # a free port
        port = probe.port
    inner = ("192.0.2.1", ', "bind": "127.0.0.1"') if way == "ssh" else ()
    site = written(tmp_path / "site", port, *inner)
    signer = site / ".sparkwright/ca" if attack != "another CA" else tmp_path / "evil"
    names = ("127.0.0.1",) if attack != "another name" else ("10.1.2.3", "box2")
    context = _secured(site, signer, *names)
    with speaking(model, context, port):
        with_ssh(site)
        done = chat(site, "--prompt", "x")
    if attack == "none":
        assert (done.exit_code, done.stdout) == (0, "Hello.\n"), done.stderr
        return
    assert done.exit_code == 1
    assert "can't be verified by" in done.stderr
    assert model.seen == []
    assert (site / "ssh.txt").exists() == (way == "ssh")  # chat does not try another path


def test_no_text_of_an_inventory_becomes_an_option_of_ssh() -> None:
    data = {"ssh_hostname": "-oProxyCommand=touch /tmp/x", "ssh_user": "a\nProxyCommand=b",
            "ssh_key": '~/my "keys"/%h', "ssh_port": 2222}  # fmt: skip
    arguments = ssh("box", data, "-W", "127.0.0.1:8000")
    assert arguments[-2:] == ["--", "-oProxyCommand=touch /tmp/x"]
    assert "User=a ProxyCommand=b" in arguments
    assert f'IdentityFile="{Path.home()}/my \\"keys\\"/%%h"' in arguments
    assert [arguments[n + 1] for n, item in enumerate(arguments) if item == "-o"] == [
        word for word in arguments if "=" in word and not word.startswith("-")
    ]
