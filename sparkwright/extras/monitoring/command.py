"""``sparkwright monitoring``: Prometheus targets and alert rules, and a Grafana dashboard."""

from pathlib import Path

import click

from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.documents.text_files import write
from sparkwright.extras.monitoring.prometheus import KEY, files

DOCUMENT = list[str]


@click.command("monitoring")
@selection.names_argument()
@options.option("monitoring --output", type=click.Path(path_type=Path, file_okay=False))
@options.option("monitoring --node-port")
@options.json_option
def command(hosts: selection.Selection, output: Path, node_port: int, as_json: bool) -> None:
    """Write the fleet's configuration for Prometheus and Grafana. No host is contacted.

    The output has targets/ for file_sd, rules/ with the doctor's diagnoses as alerts, grafana/ to
    import, and prometheus.yml. Metrics of GPU and drift come from the watch: start node_exporter
    with --collector.textfile.directory=/opt/sparkwright/watch/metrics and --collector.systemd.
    """
    plans = [(host.address, host.plan) for host in load(hosts).or_raise().values()]
    texts = files(plans, node_port)
    for path, text in texts.items():
        write(output / path, text)
    written = [str(output / path) for path in texts]
    if as_json:
        options.print_json(written)
        return
    echo(
        f"Prometheus needs the fleet's API key beside prometheus.yml, in {output / KEY} "
        "(readable only by Prometheus)",
        err=True,
    )
    echo(f"{len(written)} files for {len(plans)} hosts in {output}")
    if any("/local/" in path for path in written):
        echo(
            "some services can only be reached from their host: run an agent there that scrapes "
            "targets/local/HOST.json",
            err=True,
        )
