"""``sparkwright init``: a new site, ready for its first run."""

import re
import shlex
from pathlib import Path

import click

from sparkwright.bootstrap.gpu_question import boxes
from sparkwright.catalog import load_catalog
from sparkwright.catalog.gpus import GPUS, VRAM
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.output import MESSAGES, echo
from sparkwright.config import places, skeleton
from sparkwright.findings.user_error import Problems
from sparkwright.text.visible import visible

_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._:-]*")


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), metavar="NAME")
@option("init --host")
@option("init --gpu", type=click.Choice(sorted(GPUS), case_sensitive=False))
@json_option
def command(folder: Path, names: tuple[str, ...], gpus: tuple[str, ...], as_json: bool) -> None:
    """Write a new site into the folder NAME: deploy.py, config.py, inventory, group_data.

    \b
    sparkwright init my-lab --host spark-1 --gpu gb10 --host rtx-1 --gpu rtx5090
    sparkwright init my-lab --host spark-1 --host me@rtx-1

    Without --gpu, `init` reads each host's GPU with your own ssh, without any prompt. Without
    --host, the inventory has no hosts: `sparkwright up HOST` adds a host. No file is overwritten:
    if a file exists, `init` writes nothing.
    """
    hosts = _hosts(names, gpus)
    catalog = load_catalog(places.catalogs())
    files = skeleton.contents(hosts, catalog)
    skeleton.write(folder, files)
    without = skeleton.without_recipe(hosts, catalog)
    if as_json:
        print_json({"folder": str(folder), "files": list(files),
                    "without_recipe": [host.name for host in without]})  # fmt: skip
        return
    echo(f"{folder}: {len(files)} files written")
    for host in without:
        problem = f"no recipe of the catalog fits the {VRAM[host.gpu]:g} GiB of {host.gpu}"
        file = folder / skeleton.INVENTORY
        remedy = f"the host has no services until {file} names a recipe of your own"
        echo(f"{click.style('-->', fg='yellow')} {host.name}: {problem}: {remedy}", err=True)
    if not hosts:
        echo(f"{folder / skeleton.INVENTORY} has no hosts yet: `sparkwright up HOST` adds a host.")
    enter = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    steps = (f"{enter}sparkwright check", "sparkwright deploy --dry", "sparkwright deploy")
    echo("\n    ".join(["Next:", *steps]))


def _hosts(names: tuple[str, ...], gpus: tuple[str, ...]) -> list[skeleton.NewHost]:
    if gpus and len(names) != len(gpus):
        counts = f"{len(names)} --host and {len(gpus)} --gpu"
        raise click.UsageError(f"{counts}: give every --host its --gpu")
    problems = Problems()
    addresses = [name.rpartition("@")[2] for name in names]
    for name, address in dict(zip(names, addresses, strict=True)).items():
        where = f"command line: --host {name}"
        if not _NAME.fullmatch(name):
            problems.append(MESSAGES.mistake("no-host-name", where))
        if addresses.count(address) > 1:
            problems.append(MESSAGES.mistake("twice", where))
    problems.stop()
    if gpus:
        return [_host(name, gpu) for name, gpu in zip(names, gpus, strict=True)]
    hosts = []
    for box in boxes(names):
        if box.gpu is None:
            where = f"command line: --host {box.name}"
            why = visible(box.why or f"no recipe supports {box.shown}")
            problems.append(MESSAGES.mistake("gpu-unknown", where, name=box.name, why=why))
        else:
            hosts.append(_host(box.name, box.gpu))
    problems.stop()
    return hosts


def _host(name: str, gpu: str) -> skeleton.NewHost:
    user, _, address = name.rpartition("@")
    return skeleton.NewHost(address, gpu, user)
