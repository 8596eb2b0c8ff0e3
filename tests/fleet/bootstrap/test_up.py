"""``sparkwright up`` at a terminal: one command sets up a delivered box, with a password for login
and sudo and without Docker, until its service answers, also after interruptions.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import fakes, machines
from lab.layout import BRIDGE, HOSTS, SSH, USER
from tests.fleet.bootstrap.test_bare_host import BARE, SOURCES
from tests.fleet.site import ROOT, Site, inside, until
from tests.fleet.spares import as_installed
from tests.fleet.test_first_week import _LAB
from tests.unit.site_terminal import Terminal, environment, terminal

PASSWORD = "a-secret-of-hers"
KEY, TOLD, PLAN = "own key?", "Password of", "Do all of this?"
TARGET = f"{USER}@{BARE.address}"
IPV6 = ("fd00:77::1", "fd00:77::31")


@pytest.fixture
def mine(site: Site, tmp_path: Path) -> Iterator[Path]:
    """Site without hosts, whose user has no SSH key, and a box as delivered."""
    folder = tmp_path / "mine"
    made = _again(tmp_path, "init", str(folder))
    assert made.returncode == 0, made.stdout
    (folder / "inventory/lab.py").write_text('"""Mine."""\n')
    config = folder / "ssh_config"
    config.write_text(
        f"Host jump\n HostName {HOSTS[0].address}\n User {USER}\n IdentityFile {SSH}/id_ed25519\n"
        f" UserKnownHostsFile {SSH}/known_hosts\nHost behind\n HostName {BARE.address}\n"
        f" ProxyJump jump\nHost gate\n HostName {HOSTS[0].address}\n User {USER}\n"
        f" UserKnownHostsFile {SSH}/known_hosts\nHost gated\n HostName {BARE.address}\n"
        f" ProxyJump gate\nHost *\n IdentityFile {folder}/id_ed25519\n IdentityAgent none\n"
        f" UserKnownHostsFile {folder}/known_hosts\n"
    )
    with (folder / "group_data/all.py").open("a") as settings:
        settings.write(
            f"{_LAB}\nssh_config_file = {str(config)!r}\nbootstrap_sources = {SOURCES!r}\n"
        )
    if (cache := ROOT / ".sparkwright/cache").is_dir():
        (folder / ".sparkwright").mkdir(mode=0o700)
        subprocess.run(["cp", "-r", cache, folder / ".sparkwright/cache"], check=True)
    with as_installed(site, BARE, "inventory/bare.py"):
        _shell(f"echo '{USER}:{PASSWORD}' | chpasswd; rm /home/{USER}/.ssh/authorized_keys; "
               f"echo '{USER} ALL=(ALL) ALL' > /etc/sudoers.d/{USER}")  # fmt: skip
        yield folder


def _shell(script: str) -> str:
    return inside(BARE.name, "sh", "-c", script)


@contextmanager
def _up(folder: Path, *arguments: str, to: str = PLAN) -> Iterator[Terminal]:
    """Run the command at a terminal and answer its prompts up to ``to``, which stays open."""
    with terminal(folder, "up", *arguments) as shown:
        for prompt, typed in ((KEY, "yes"), (TOLD, PASSWORD), (PLAN, "y")):
            shown.until(prompt, seconds=120)
            if prompt == to:
                break
            shown.type(f"{typed}\n")
        yield shown


def _again(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command a second time, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "sparkwright", *arguments], cwd=folder,
        env=environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=500, check=False,
    )  # fmt: skip


def _untouched(folder: Path) -> None:
    """Check that the box is unchanged and in no inventory."""
    assert (folder / "inventory/lab.py").read_text() == '"""Mine."""\n'
    _shell("! command -v docker && ! test -e /opt/sparkwright && ! test -e /var/lib/sparkwright")


@pytest.mark.timeout(900)
def test_up_sets_up_a_new_box_and_remove_undoes_every_step(site: Site, mine: Path) -> None:
    """The box has a card of 12 GB, and the model is named by its repository of GGUF files."""
    site.gpu(BARE.name, kind="rtx5070")
    watch = "while :; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; sleep 0.05; done"
    inside(BARE.name, "systemd-run", "--unit=eyes", "sh", "-c", f"{watch} > /root/seen 2>/dev/null")
    with _up(mine, TARGET, "--model", "unsloth/Qwen3.5-9B-GGUF") as shown:
        for line in ("install docker.io", "become root without a password", "GiB of weights"):
            assert line in shown.got
        shown.type("y\n")
        assert shown.ended(600) == 0, shown.got
    assert [shown.got.count(prompt) for prompt in (KEY, TOLD, PLAN)] == [1, 1, 1]
    assert PASSWORD not in shown.got
    _shell("systemctl stop eyes")  # the recording ends before the search
    assert PASSWORD.encode() not in (BARE.root / "root/seen").read_bytes()
    assert not [path for path in mine.rglob("*") if path.is_file()
                and PASSWORD in path.read_text(errors="replace")]  # fmt: skip
    (curl,) = [line for line in shown.got.splitlines() if line.startswith("  curl ")]
    assert '"content"' in subprocess.run(["bash", "-c", curl], capture_output=True, text=True,
                                         check=True, timeout=60).stdout  # fmt: skip
    before = (mine / "inventory/lab.py").read_text()
    again = _again(mine, "up", TARGET, "--yes")
    assert again.returncode == 0, again.stdout
    assert (mine / "inventory/lab.py").read_text() == before
    done = _again(mine, "remove", BARE.address, "--yes")
    assert done.returncode == 0, done.stdout
    _shell(f"! command -v docker && ! test -e /etc/sudoers.d/sparkwright-{USER}")


@pytest.mark.timeout(300)
def test_impossible_settings_are_reported_before_any_change(site: Site, mine: Path) -> None:
    """The cases are a wrong password, no terminal, a full disk, and a GPU without a recipe."""
    with _up(mine, TARGET, to=TOLD) as shown:
        for turn in range(1, 4):
            shown.until(TOLD, turn)
            shown.type("wrong\n")
        assert shown.ended() == 2
    assert f"password of {USER} was wrong each time" in " ".join(shown.got.split())
    _untouched(mine)
    done = _again(mine, "up", TARGET, "--yes")
    assert (done.returncode, "ssh-copy-id" in done.stdout) == (2, True), done.stdout
    with terminal(mine, "up", TARGET, "--data", "disk_headroom_gib=1000000") as shown:
        shown.until(TOLD)
        shown.type(f"{PASSWORD}\n")
        assert shown.ended(120) == 1, shown.got
    assert "disk: " in shown.got
    _untouched(mine)
    site.gpu(BARE.name, kind="h200")
    card = BARE.root / fakes.GPU_FILE
    card.write_text(card.read_text().replace("H200", "L40S").replace('"9.0"', '"8.9"'))
    with terminal(mine, "up", TARGET) as shown:
        shown.until(TOLD)  # sudo prompts, so the key is already installed
        shown.type(f"{PASSWORD}\n")
        assert shown.ended(60) == 2, shown.got
    assert "L40S" in shown.got
    _untouched(mine)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("target", [f"{USER}@behind", f"{USER}@{IPV6[1]}"])
def test_a_box_is_reached_through_a_jump_host_and_by_ipv6(mine: Path, target: str) -> None:
    if ":" in target:
        Path(f"/proc/sys/net/ipv6/conf/{BRIDGE}/disable_ipv6").write_text("0")
        add = ["ip", "addr", "replace", f"{IPV6[0]}/64", "dev", BRIDGE, "nodad"]
        subprocess.run(add, check=True)
        _shell("echo 0 > /proc/sys/net/ipv6/conf/host0/disable_ipv6 || true; "
               f"ip addr replace {IPV6[1]}/64 dev host0 nodad")  # fmt: skip
    try:
        with _up(mine, target) as shown:
            assert "clients" in shown.got
            time.sleep(0.5)  # readline loses a signal that comes before it waits
            shown.type("\x03")
            assert shown.ended() == 130
        assert "run the same command again" in shown.got
        _untouched(mine)
    finally:
        subprocess.run(["ip", "addr", "del", f"{IPV6[0]}/64", "dev", BRIDGE],
                       capture_output=True, check=False)  # fmt: skip


@pytest.mark.timeout(300)
def test_a_jump_host_has_its_own_password(mine: Path) -> None:
    """The prompt names the jump host, whose password differs from the box's."""
    kept = f"/home/{USER}/.ssh/authorized_keys /etc/shadow"
    jump = f"tar -cPf /root/kept.tar {kept}; echo '{USER}:of-the-gate' | chpasswd"
    inside(HOSTS[0].name, "sh", "-c", jump)
    try:
        with terminal(mine, "up", f"{USER}@gated") as shown:
            for prompt, typed in (
                (f"{TOLD} {USER} on gate, a jump host to gated: ", "of-the-gate"),
                (KEY, "yes"), (f"{TOLD} {USER} on gated: ", PASSWORD), (PLAN, "n"),
            ):  # fmt: skip
                shown.until(prompt, seconds=120)
                shown.type(f"{typed}\n")
            assert shown.ended() == 130, shown.got
        assert "Wrong." not in shown.got
        _untouched(mine)
    finally:
        inside(HOSTS[0].name, "tar", "-xPf", "/root/kept.tar")


#: Progress of the box at the moment when the laptop is closed.
MOMENTS = {
    "packages are installed": "pgrep -x dpkg",
    "weights are on their way": "test -e /opt/models",
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", MOMENTS)
def test_up_continues_after_an_interruption(mine: Path, moment: str) -> None:
    look = ["sh", "-c", MOMENTS[moment]]
    with _up(mine, TARGET) as shown:
        shown.type("y\n")
        until(lambda: shown._read(0.1) and machines.inside(BARE, look).returncode == 0, moment, 300)
        os.killpg(shown.process.pid, signal.SIGKILL)
    again = _again(mine, "up", TARGET, "--yes")
    assert again.returncode == 0, again.stdout
    assert (mine / "inventory/lab.py").read_text().count(BARE.address) == 1
