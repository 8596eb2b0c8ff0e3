"""The whole fleet: start, stop, status."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lab import apt, base, git_repository, holding, machines, network, origin, packages
from lab.holding import PROJECT, when
from lab.layout import (
    APT_PORT,
    CACHE,
    DEPOT,
    HOSTS,
    HUB_PORT,
    MACHINES,
    REGISTRY_PORT,
    SPARES,
    SSH,
    STATE,
    USER,
    Machine,
)
from lab.lock_file import PLACE, one_at_a_time

#: Folder for temporary files of image builds: other users can't write to it.
_SCRATCH = STATE / "tmp"
#: Lock beside the holder's record: processes that a killed holder has started may still run.
_CHANGING = PLACE / "changing"


def up(only: tuple[str, ...] = ()) -> None:
    """Start the machines that are off. Running machines stay unchanged."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", flush=True)

    hosts = [host for host in (*HOSTS, *SPARES) if (host.name in only if only else host in HOSTS)]
    with _alone():
        packages.install()
        _of_whom(say)
        with ThreadPoolExecutor(max_workers=8) as pool:
            # The image's root file system is built at the same time as the hosts' file system.
            image = pool.submit(_image_files)
            tree = base.ensure()
            keys()
            network.up()
            repositories = pool.submit(_repositories)
            asleep = [machine for machine in (DEPOT, *hosts) if not machines.running(machine)]
            bare = base.ensure_bare() if any(host.bare for host in hosts) else None
            if bare:
                apt.publish(bare)
            newest = base.ensure_newest() if any(host.newest for host in hosts) else None
            for machine in asleep:
                own = bare if machine.bare else newest if machine.newest else None
                machines.start(machine, own or tree)
            if asleep:
                say(f"booting {', '.join(machine.name for machine in asleep)}")
            repositories.result()
            image.result()
            ready = [pool.submit(_wait_host, host) for host in hosts]
            wait("registry", DEPOT, REGISTRY_PORT)
            wait("hub", DEPOT, HUB_PORT)
            _push()
            for job in ready:
                job.result()
        say(f"running: {', '.join(host.name for host in hosts)}, registry and hub")


def down(*, keep_base: bool = False) -> None:
    """Remove every trace: processes, mounts, bridge, files.

    A removal can be repeated, also after a failure.
    """
    made, mine = origin.read(), origin.here()
    if made is not None and made.checkout != mine.checkout:
        print(f"removing the fleet of {made.checkout}, started {when(made.since)}", flush=True)
    with _alone():
        for machine in MACHINES:
            machines.remove(machine)
        network.down()
        shutil.rmtree(STATE, ignore_errors=True)
        if not keep_base:
            shutil.rmtree(CACHE, ignore_errors=True)
    print("fleet removed" + (", base file systems kept" if keep_base else ""), flush=True)


def status() -> None:
    """Print the state of each machine, the fleet's checkout, and the lab's holder."""
    for machine in MACHINES:
        port = REGISTRY_PORT if machine is DEPOT else 22
        if machine not in (DEPOT, *HOSTS) and machines.running(machine) is None:
            continue
        state = "off" if machines.running(machine) is None else "booting"
        if state == "booting" and _open(machine.address, port):
            state = "up"
        print(f"{machine.name:10} {machine.address:14} {state}")
    made, holder = origin.read(), holding.holder()
    if made is not None:
        print(f"started from {made.checkout} {when(made.since)}")
    print(holder.message.splitlines()[0] if holder else "the lab is free")


def ssh_command(machine: Machine) -> list[str]:
    """The ssh command for a machine."""
    options = ["-i", f"{SSH}/id_ed25519", "-o", f"UserKnownHostsFile={SSH}/known_hosts"]
    options += ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
    return ["ssh", *options, f"{USER}@{machine.address}"]


def _alone() -> contextlib.AbstractContextManager[None]:
    """Allow only one `up` or `down` at a time."""
    return one_at_a_time(_CHANGING, "waiting for another `up` or `down` to end")


def _of_whom(say: Callable[[str], None]) -> None:
    """Record a new fleet's checkout; warn about another checkout's fleet, and renew its hub."""
    STATE.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not any(machine.home.exists() for machine in MACHINES):
        origin.write(origin.here())
        return
    if not base.path().is_dir():  # a machine's disk has only differences from its base
        raise SystemExit(
            "the machines use another base file system than this checkout: "
            "run `python -m lab down` first, or use the checkout that started the machines"
        )
    for line in origin.differences(origin.read(), origin.here()):
        say(line)
    if machines.running(DEPOT) and not machines.hub_is_ours():
        say("restarting the depot, since its hub runs code of another checkout")
        machines.cut_power(DEPOT)


def keys() -> None:
    """Make a key pair for the user and a key pair for all hosts, once per fleet."""
    if (SSH / "known_hosts").exists():
        return
    SSH.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in ("id_ed25519", "host_ed25519"):
        (SSH / name).unlink(missing_ok=True)
        comment = f"sparkwright-lab {name}"
        file = str(SSH / name)
        arguments = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file]
        subprocess.run(arguments, check=True)
    public = " ".join((SSH / "host_ed25519.pub").read_text().split()[:2])
    (SSH / "known_hosts").write_text("".join(f"{m.address} {public}\n" for m in MACHINES))
    # After `sudo make demo`, the user's own ssh must be able to read the keys.
    owner = os.environ.get("SUDO_UID")
    if owner:
        for path in (SSH, *SSH.iterdir()):
            os.chown(path, int(owner), -1)


def _module(*arguments: str) -> None:
    _SCRATCH.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=PROJECT, env={**os.environ, "TMPDIR": str(_SCRATCH)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"python -m {arguments[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _repositories() -> None:
    _module("lab.hub.repositories", str(STATE / "depot" / "hub"))
    git_repository.make(STATE / "depot" / "hub" / "git")


def _image_files() -> None:
    _module("lab.serving.build", "--cache", str(CACHE))


def _push() -> None:
    registry = f"http://{DEPOT.address}:{REGISTRY_PORT}"
    _module("lab.serving.build", "--cache", str(CACHE), "--registry", registry)


def _wait_host(host: Machine) -> None:
    """Wait until SSH answers and Docker runs."""
    wait("SSH", host, 22)
    if host.bare:
        wait("apt repository", DEPOT, APT_PORT)
        return

    def docker() -> bool:
        return machines.inside(host, ["docker", "version"]).returncode == 0

    _until(docker, f"Docker of {host.name}", 60)


def wait(label: str, machine: Machine, port: int) -> None:
    _until(lambda: _open(machine.address, port), f"{label} of {machine.name}", 90)


def _until(condition: Callable[[], bool], label: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            log = f"{STATE}/machines/*/console.log"
            raise SystemExit(f"{label} does not answer after {seconds:.0f} s; see {log}")
        time.sleep(0.1)


def _open(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
