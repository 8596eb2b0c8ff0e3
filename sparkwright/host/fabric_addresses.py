"""Change the addresses of a host's rails without losing access to the host. The program runs as
root.

A timer that reverts the change is started before the change. The timer is stopped once a test has
passed: the controller has reached the host again, and all peers answer on the rails. After all
hosts have passed the test once, each host repeats the test, so either all hosts keep the change or
no host keeps it. The timer is a unit on the disk, so it survives a power cut.
"""

import shlex
import shutil
import tempfile
from pathlib import Path

from sparkwright.host.fabric import NETPLAN
from sparkwright.host.lib import documents, files, icmp, processes, records, systemd, waiting

KEPT = "/var/lib/sparkwright/fabric"


@records.dataclass(frozen=True)
class AddressesRequest:
    """A step of the change of addresses.

    Attributes:
        step: ``arm`` checks the text, keeps the old file, and starts the timer; ``prove`` pings the
            peers, and reverts the change at once if a peer does not answer; ``keep`` pings again
            after every host has proved the change, and stops the timer.
        text: text of the new file.
        devices: devices that the text configures.
        seconds: time until the timer fires; for the other steps, time limit of the pings.
    """

    step: str
    text: str = ""
    devices: tuple[str, ...] = ()
    pings: tuple[icmp.Ping, ...] = ()
    seconds: int = 120


_BACK = "fabric-addresses-back"
_TREES = ("etc/netplan", "lib/netplan", "run/netplan")
_SECONDS = 180


def main(request: AddressesRequest) -> tuple[str, ...]:
    """Do a step. Return the faults; empty if the step is done."""
    if request.step == "arm":
        return arm(request.text, request.devices, request.seconds)
    failures = prove(request.pings, request.seconds)
    if request.step == "keep" and not failures:
        disarm()
    return failures


def arm(text: str, devices: tuple[str, ...], seconds: int) -> tuple[str, ...]:
    """Check the new text, keep the old file, and start the timer. Return the faults."""
    if why := refused(text):
        return (f"netplan generate does not accept the new file: {why}",)
    kept, current = Path(KEPT), files.read(Path(NETPLAN))
    # Undoing a second change restores the state before the first change.
    if current is not None and not (kept / "devices").exists():
        files.write(kept / "before.yaml", current, 0o600)
    earlier = (documents.text(kept / "devices") or "").split()
    every = tuple(dict.fromkeys((*earlier, *devices)))
    files.write(kept / "devices", "\n".join(every) + "\n", 0o600)
    if current is not None:
        files.write(kept / "last.yaml", current, 0o600)
    else:
        (kept / "last.yaml").unlink(missing_ok=True)
    files.write(kept / "back", script("last.yaml", every), 0o700)
    service = f"[Unit]\nDescription=Take unproven addresses back\n[Service]\nType=oneshot\n" \
              f"ExecStart=/bin/sh {kept / 'back'}\n"  # fmt: skip
    timer = (
        "[Unit]\nDescription=Take unproven addresses back, unless they are proved before\n"
        f"[Timer]\nOnActiveSec={seconds}\nAccuracySec=1s\n[Install]\nWantedBy=timers.target\n"
    )
    for name, content in ((f"{_BACK}.service", service), (f"{_BACK}.timer", timer)):
        files.write(systemd.UNITS / name, content, 0o644)
    systemd.want_at_boot(f"{_BACK}.timer", wanted=True)
    started = systemd.systemctl("restart", f"{_BACK}.timer")
    return () if started.ok else (f"the rollback timer does not start: {started.message}",)


def refused(text: str) -> str | None:
    """Return netplan's reason to refuse the file together with the other files; None if netplan
    accepts the file.
    """
    with tempfile.TemporaryDirectory(prefix="sparkwright-netplan-") as folder:
        for tree in _TREES:
            if Path("/", tree).is_dir():
                shutil.copytree(Path("/", tree), Path(folder, tree))
        file = Path(folder, NETPLAN[1:])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600)
        done = processes.run("netplan", "generate", "--root-dir", folder, timeout=60)
    return None if done.ok else done.message


def script(name: str, devices: tuple[str, ...]) -> str:
    """Return the rollback script, which restores the earlier netplan file and removes all newer
    addresses.
    """
    old = shlex.quote(f"{KEPT}/{name}")
    flushed = "".join(
        f"ip addr flush dev {shlex.quote(device)} scope global\n" for device in devices
    )
    return (
        f"if [ -e {old} ]; then install -m 600 {old} {NETPLAN}; else rm -f {NETPLAN}; fi\n"
        f"{flushed}netplan apply\n"
        f"rm -f {systemd.UNITS}/timers.target.wants/{_BACK}.timer {systemd.UNITS}/{_BACK}.*\n"
        f"systemctl --no-block stop {_BACK}.timer\n"
        f"[ -e {NETPLAN} ] || rm -rf {KEPT}\n"
    )


def prove(pings: tuple[icmp.Ping, ...], seconds: int) -> tuple[str, ...]:
    """Ping until all addresses answer; otherwise revert the change now. Return the faults."""
    failures = waiting.remaining(lambda: tuple(filter(None, map(silent, pings))), seconds, 1.0)
    if not failures:
        return ()
    processes.run("sh", f"{KEPT}/back", timeout=_SECONDS)
    return (*failures, "the former addresses are restored")


def silent(ping: icmp.Ping) -> str:
    """Return the command of an unanswered ping with the reason; empty for an answered ping."""
    why = icmp.echo(ping.address, ping.device, ping.size, tries=1)
    return why and f"ping -M do -s {ping.size} -I {ping.device} {ping.address}: {why}"


def disarm() -> None:
    """Stop the timer and remove its units."""
    systemd.systemctl("stop", f"{_BACK}.timer")
    systemd.want_at_boot(f"{_BACK}.timer", wanted=False)
    for name in (f"{_BACK}.timer", f"{_BACK}.service"):
        (systemd.UNITS / name).unlink(missing_ok=True)
    for name in ("back", "last.yaml"):
        Path(KEPT, name).unlink(missing_ok=True)


def undo() -> bool:
    """Restore the addresses from before the first change. Return whether there was a change."""
    devices = tuple((documents.text(f"{KEPT}/devices") or "").split())
    if not devices:
        return False
    disarm()
    files.write(Path(KEPT, "undo"), script("before.yaml", devices), 0o700)
    processes.run("sh", f"{KEPT}/undo", timeout=_SECONDS)
    shutil.rmtree(KEPT, ignore_errors=True)
    return True
