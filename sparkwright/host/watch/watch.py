"""Take one sample of this host, add it to the day's samples, and record the findings.

``sparkwright-watch.timer`` runs this program every minute as root, with the path of its
configuration.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sparkwright.host.lib import (
    disks,
    docker,
    documents,
    exclusive,
    files,
    gpu,
    homes,
    metrics,
    ranks,
    systemd,
)
from sparkwright.host.service import current
from sparkwright.host.watch import evaluation, state


def sample(config: state.WatchConfig, now: float) -> state.Sample:
    """Take a sample."""
    root = Path(config.services_root)
    systems = disks.file_systems(config.paths).items()
    return state.Sample(
        at=round(now),
        switching=homes.switching(root / "state"),
        gpu=evaluation.gpu_state(gpu.ask(), config.limits),
        disks={path: (disk.free, disk.total) for path, disk in systems},
        services={
            watched.name: service(watched, root / "services" / watched.name, config.metric_names)
            for watched in config.services
        },
    )


def service(
    watched: state.WatchedService, home: Path, names: Mapping[str, str]
) -> state.ServiceSample:
    """Sample a service's unit, health, counters and drift."""
    unit = ranks.unit(home, systemd.unit(homes.unit(watched.name), timeout=10))
    server = ranks.server(home, watched.address, watched.port)
    health = ranks.health(home, server)
    code = health.code if health else None
    asks = code == 200 and ranks.health(home) is None
    totals = metrics.ask(server, names) if asks else None
    kept: dict[str, float] = {}
    if totals is not None:
        kept = {name: totals[name] for name in metrics.WATCHED if name in totals}
        kept[metrics.PROGRESSED] = metrics.progress(totals)
    return state.ServiceSample(
        health=code,
        active=unit.get("ActiveState"),
        restarts=int(unit.get("NRestarts") or 0),
        metrics=kept,
        drift=tuple(drift(home)),
    )


def drift(home: Path) -> Iterator[str]:
    """Yield a service's differences from the state after its last switch: its release, and the
    texts in the release's record.
    """
    link, good = files.target(home / "current"), files.target(home / "good")
    record = current(home)
    # Skip a follower, whose head chooses the release, and a sleeping service, which no switch has
    # proved yet.
    proved = record is None or not (record.follower or (home / exclusive.ASLEEP).exists())
    if good and link != good and proved:
        yield f"release {link or 'nothing'} instead of {good}"
    elif record and documents.text(home / "current/compose.yaml") != record.compose:
        yield "compose.yaml was changed by hand"
    if record and documents.text(record.unit_path) != record.unit_text:
        yield f"{record.unit} was changed by hand"
    runs = docker.running_release(home.name)
    if runs and runs != link:
        yield f"the container runs release {runs}"


def look(config: state.WatchConfig, now: float) -> list[str]:
    """Take a sample, evaluate it and record the findings. Returns new and ended findings, as
    lines.
    """
    before = documents.record(state.WatchState, config.report) or state.WatchState(0)
    ring = evaluation.kept([*before.ring, sample(config, now)])
    boots = {watched.name: watched.boot_seconds for watched in config.services}
    result = evaluation.judge(ring, boots, config.limits)
    result = evaluation.carried(result, before.findings, round(now))
    report = state.WatchState(round(now), tuple(result), tuple(ring))
    files.write_record(Path(config.report), report, 0o600, durable=False)
    exports = Path(config.services_root, "watch/metrics/sparkwright.prom")
    files.write(exports, exported(result, round(now)), 0o644, durable=False)
    earlier, now_wrong = ({item.subject for item in part} for part in (before.findings, result))
    begun = [_line(item) for item in result if item.subject not in earlier]
    over = [_line(item) for item in before.findings if item.subject not in now_wrong]
    return [*begun, *(f"over: {line}" for line in over)]


def exported(findings: Iterable[state.WatchFinding], now: int) -> str:
    """Return the findings in the text format of node_exporter's textfile collector."""
    lines = [
        "# HELP sparkwright_watch_seconds Time of the last sample, in seconds since the epoch.",
        "# TYPE sparkwright_watch_seconds gauge",
        f"sparkwright_watch_seconds {now}",
        "# HELP sparkwright_finding Fault that the watch reports.",
        "# TYPE sparkwright_finding gauge",
    ]
    for item in findings:
        labels = f'diagnosis="{item.name}",service="{item.service or ""}"'
        lines.append(f'sparkwright_finding{{{labels},severity="{item.severity}"}} 1')
    # Two disks may share a finding, and node_exporter refuses a file with a duplicate line.
    return "\n".join([*dict.fromkeys(lines), ""])


def _line(finding: state.WatchFinding) -> str:
    where = f"{finding.service}: " if finding.service else ""
    return f"{where}{finding.severity}: {finding.name}: {finding.seen}"


def run(path: str) -> int:
    """Run the watch once; changes go to the journal. Returns the exit code."""
    if (config := documents.record(state.WatchConfig, path)) is None:
        raise SystemExit(f"{path} can't be read")
    for line in look(config, time.time()):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))
