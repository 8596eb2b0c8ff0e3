"""``sparkwright up``: set up a box from its first login to its first answer."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, get_args

import click

from sparkwright.bootstrap.first_login import Ask, Login
from sparkwright.bootstrap.gpu_question import box as gpu_of
from sparkwright.catalog import load_catalog
from sparkwright.catalog.gpus import FAMILIES, GPUS, VRAM
from sparkwright.cli.bootstrap import bootstrapped
from sparkwright.cli.lib import completion, selection
from sparkwright.cli.lib.extras import offered
from sparkwright.cli.lib.hosts import Hosts, connection_options, connection_words, given
from sparkwright.cli.lib.options import confirm, option, yes_option
from sparkwright.cli.lib.output import MESSAGES, echo
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lock import LockReport, locked
from sparkwright.config import bootstrap_settings, places, skeleton, templates
from sparkwright.config.connection_data import connection_data
from sparkwright.config.inventory import (
    HostInput,
    hosts_of,
    overrides_by_key,
    site_inventory,
    ssh_address,
    with_host,
)
from sparkwright.config.secrets import VARIABLE, pasted
from sparkwright.documents import text_files
from sparkwright.findings import finding, user_error
from sparkwright.findings.render import paint, text
from sparkwright.results.progress import duration
from sparkwright.site.endpoints import Endpoint, Key, endpoint_of
from sparkwright.site.fleet import PlannedHost
from sparkwright.text.sizes import GIB
from sparkwright.text.visible import visible

#: Bootstrap steps that a deploy needs; completed steps are skipped.
_STEPS = ("sudoers", "docker", "nvidia-container-toolkit", "driver", "firewall")
_TARGET = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]{0,63})@)?"
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|\[?[0-9a-fA-F:.]{2,45}(?:%[A-Za-z0-9._-]+)?\]?)"
)
_PROMPT = "Which model are you, and what are you good at? Two sentences."
_AGAIN = "run the same command again to continue"


@dataclass
class _Box:
    """A box that `up` sets up.

    Attributes:
        name: name in the inventory.
        data: data for the inventory, besides the site's settings for every host.
        existing: the inventory's host with this address; None for a new host.
        title: name of the GPU.
        group: the inventory's group for a new host.
        steps: bootstrap steps as a ``--data`` text.
        readiness: ``run.bootstrap.Readiness``.
        endpoints: addresses for clients.
    """

    name: str
    login: Login
    data: dict[str, Any]
    existing: HostInput | None
    title: str = "in the inventory already"
    group: str = ""
    steps: str = ""
    readiness: Any = None
    endpoints: Sequence[Endpoint] = ()


@click.command("up")
@click.argument("targets", nargs=-1, required=True, metavar="[USER@]HOST...")
@option("up --model")
@option("up --recipe", shell_complete=completion.recipes)
@option("up --gpu", type=click.Choice(sorted(GPUS), case_sensitive=False))
@option("up --site", type=click.Path(path_type=Path, file_okay=False))
@yes_option
@selection.data_option
@connection_options
def command(
    targets: tuple[str, ...], model: str | None, recipe: str | None, gpu: str | None, site: Path,
    yes: bool, overrides: tuple[str, ...],
) -> None:  # fmt: skip
    """Take boxes from an SSH login to an answer: the site, the plan and the deploy in one command.

    \b
    sparkwright up me@my-spark.local

    `up` prompts once each for the box's host key, its password and the plan. `up` uses the password
    in this run only, to install your SSH key and a rule for sudo without a password. Finished steps
    are not repeated: the same command continues an interrupted run, and another box joins the same
    site. Exit with 0 only when every box has answered.
    """
    terminal = _on_a_terminal()
    if not (yes or terminal):
        raise MESSAGES.refusal("up-without-terminal", "command line")
    start, is_site = Path.cwd(), (site / "deploy.py").is_file()
    try:
        if is_site:
            os.chdir(site)
        else:
            skeleton.nothing_in_the_way(site, skeleton.FILES)
        inventory = site_inventory() if is_site else None
        boxes = _logged_in(targets, inventory, overrides, _ask if terminal else None)
        _placed(boxes, _service(model=model, recipe=recipe), gpu)
        if not is_site:
            files = skeleton.contents((), load_catalog(places.catalogs()))
            skeleton.write(site, {**files, skeleton.INVENTORY: skeleton.empty_inventory()})
            os.chdir(site)
            echo(f"{Path.cwd()}: the new site is in this folder", err=True)
        sys.path.append(str(Path.cwd()))
        for report in _agreed(boxes, overrides, yes=yes):
            echo(f"{report.file}: {report.state}", err=True)
        planned = _deployed(boxes, overrides)
        answered = [_answered(host, moved=Path.cwd() != start) for host in planned]
    except (KeyboardInterrupt, click.Abort):
        echo(f"\nstopped: {_AGAIN}", err=True)
        sys.exit(130)
    sys.exit(int(not all(answered)))


def _on_a_terminal() -> bool:
    return sys.stdin.isatty()


def _ask(question: str, shown: bool) -> str:
    text = "\n".join(map(visible, question.split("\n")))
    return str(click.prompt(text, hide_input=not shown, prompt_suffix="", err=True))


def _service(**chosen: str | None) -> dict[str, Any] | None:
    """Return the service that the command line names; None for the box's default."""
    named = {key: value for key, value in chosen.items() if value}
    return {"main": {**named, "port": 8000}} if named else None


def _targets(targets: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return user and address of each target. Raises UserError for invalid targets."""
    problems, result = user_error.Problems(), []
    for target in targets:
        match = _TARGET.fullmatch(target)
        address = match["host"].strip("[]") if match else ":"
        try:
            if ":" in address:
                ip_address(address)
            result.append((match and match["user"], address))
        except ValueError:
            problems.append(MESSAGES.mistake("no-target", "command line", target=target[:80]))
    problems.stop()
    return result


def _name(address: str, taken: Collection[str]) -> str:
    """Choose the name of a new box in the inventory. Raises UserError if every name is taken."""
    by_number = ":" in address or address.replace(".", "").isdigit()
    for name in [address] if by_number else [address.partition(".")[0], address]:
        if name.lower() not in taken:
            return name
    raise MESSAGES.refusal("name-taken", "command line", address=address)


def _logged_in(
    targets: Sequence[str], inventory: Path | None, overrides: Sequence[str], ask: Ask | None
) -> list[_Box]:
    """Log in to every box, and return the boxes once each user can become root.

    Raises UserError.
    """
    hosts = hosts_of(inventory) if inventory and not skeleton.is_example(inventory) else []
    # A group's name means every host of the group.
    taken = {"all", *(family.group for family in FAMILIES.values())}
    taken |= {inventory.stem.lower()} if inventory else {"lab"}
    taken |= {name.lower() for host in hosts for name in (host.name, *host.groups)}
    names = ("ssh_user", "ssh_port", "ssh_key")
    typed: dict[str, Any] = {name: given()[name] for name in names if name in given()}
    boxes: list[_Box] = []
    for user, address in _targets(targets):
        same = (
            host
            for host in hosts
            if address.lower()
            in (host.name.lower(), ssh_address(host.name, host.data).rpartition("@")[2].lower())
        )
        existing = next(same, None)
        name = existing.name if existing else _name(address, taken)
        taken.add(name.lower())
        data = {"ssh_hostname": address} if name != address and not existing else {}
        data |= {"ssh_user": user} if user else {}
        every = connection_data(Path("group_data/all.py")) if inventory else {}
        every = {**every, **data, **(existing.data if existing else {}), **typed}
        every |= overrides_by_key(overrides)
        if user and every["ssh_user"] != user:
            raise MESSAGES.refusal("other-user", "command line", name, user=every["ssh_user"])
        login = Login(name, every, ask)
        echo(f"{name}: logging in", err=True)
        login.open()
        if login.made_key:
            echo(f"{name}: a new SSH key was made for you: {login.made_key}", err=True)
        if login.address not in (address.lower(), address):  # an alias in ssh_config
            data["lan_address"] = login.address
        boxes.append(_Box(name, login, {**data, **typed}, existing))
    return boxes


def _placed(boxes: Sequence[_Box], service: Mapping[str, Any] | None, gpu: str | None) -> None:
    """Choose group and services of each new box by its GPU.

    Raises UserError for boxes without a known GPU.
    """
    problems, catalog = user_error.Problems(), load_catalog(places.catalogs())
    for box in boxes:
        if box.existing:
            if service not in (None, box.existing.data.get("services")):
                problems.append(MESSAGES.mistake("already-there", "command line", box.name))
            continue
        answer = gpu_of(box.name, box.login.data)
        card = gpu or answer.gpu
        facts = {"shown": visible(answer.shown or answer.why), "gpus": ", ".join(sorted(GPUS))}
        if card is None:
            problems.append(MESSAGES.mistake("no-gpu-to-serve-on", "GPU", box.name, **facts))
            continue
        host = skeleton.NewHost(box.name, card)
        services = service or skeleton.services_of(host, catalog)
        if services == {}:
            facts = {"gpu": card, "gib": f"{VRAM[card]:g}"}
            problems.append(MESSAGES.mistake("no-recipe-for-gpu", "GPU", box.name, **facts))
        box.group, box.title = skeleton.group_of(host), visible(answer.shown) or card
        box.data |= {"services": dict(services)} if services else {}
        box.data |= {"gpu": card} if service else {}
    problems.stop()


def _deployed(boxes: Sequence[_Box], overrides: tuple[str, ...]) -> list[PlannedHost]:
    """Deploy the boxes; exit if a box fails."""
    inventory, names = site_inventory(), tuple(box.name for box in boxes)
    for box in boxes:
        decision, more = box.readiness.decision, (box.steps, "bootstrap_reboot=True")
        hosts = Hosts(inventory, (*overrides, *more[: 1 + decision.reboot]), (box.name,))
        options: dict[str, Any] = {"makes_secrets": True, "password": box.login.password}
        todo = decision.steps or decision.reboot
        if todo and hosts.show(bootstrapped, as_json=False, **options):
            _not_yet(box.name)
    chosen = (f"--data={value}" for value in overrides)
    arguments = ["deploy", str(inventory), *names, "--yes", *connection_words(), *chosen]
    sys.stdout.flush()
    if subprocess.run([sys.executable, "-m", "sparkwright", *arguments], check=False).returncode:
        _not_yet(", ".join(names))
    return list(load(Hosts(inventory, overrides, names)).or_raise().values())


def _not_yet(names: str) -> None:
    echo(f"{click.style(names, fg='red')}: not ready yet: fix the cause, then {_AGAIN}", err=True)
    sys.exit(1)


def _agreed(boxes: Sequence[_Box], overrides: tuple[str, ...], *, yes: bool) -> list[LockReport]:
    """Show the plan of each box.

    Put the box into the inventory and pin its images and models; undo both if the user declines.
    """
    inventory = site_inventory()
    before = after = inventory.read_text(encoding="utf-8")
    if skeleton.is_example(inventory):
        echo(f"{inventory}: the example's hosts are removed", err=True)
        after = skeleton.empty_inventory()
    for box in boxes:
        if box.existing is None:
            after = with_host(inventory, after, box.group, box.name, box.data)
    # A closed terminal counts as a declined plan.
    ends = [number for number in (signal.SIGHUP, signal.SIGTERM)
            if signal.getsignal(number) is signal.SIG_DFL]  # fmt: skip
    for number in ends:
        signal.signal(number, signal.default_int_handler)
    _rewrite(inventory, after)
    changed: dict[Path, tuple[str | None, str | None]] = {inventory: (before, after)}
    try:
        hosts = _every(inventory, overrides, [box.name for box in boxes])
        files = {Path(host.plan.settings.lock_file) for host in hosts.values()}
        unpinned = {file: _text(file) for file in files}
        reports = locked(hosts)
        changed |= {file: (unpinned[file], _text(file)) for file in files}
        if not all([_ready(box, Hosts(inventory, overrides, (box.name,))) for box in boxes]):  # noqa: C419
            sys.exit(1)
        facts = {"gib": GIB, "visible": visible, "style": click.style, "duration": duration}
        echo(templates.template("plan/up.txt.j2").render(boxes=boxes, **facts).rstrip())
        confirm("Do all of this?", yes=yes, dry=False)
    except BaseException:
        for file, (former, present) in changed.items():
            if former != present == _text(file):
                _rewrite(file, former)
        raise
    for number in ends:
        signal.signal(number, signal.SIG_DFL)
    return reports


def _every(
    inventory: Path, overrides: tuple[str, ...], names: Sequence[str]
) -> dict[str, PlannedHost]:
    """Plan every host: ``--data`` applies only to the boxes, so other hosts' pins do not change."""
    plans = dict(load(Hosts(inventory, overrides, tuple(names))).or_raise())
    others = {host.name for host in Hosts(inventory).read()} - {*names}
    return plans | (load(Hosts(inventory, limit=tuple(others))).or_raise() if others else {})


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


def _rewrite(file: Path, text: str | None) -> None:
    """Write or remove a file; a link stays a link, and the file's permissions stay."""
    if text is None:
        file.unlink()
    elif _text(file) != text:
        file = file.resolve()
        text_files.write(file, text, stat.S_IMODE(file.stat().st_mode))


def _ready(box: _Box, hosts: Hosts) -> bool:
    """Check a box of the inventory and print every problem; return whether the box is ready."""
    from sparkwright.run.bootstrap import readiness

    data = hosts.read()[0].data
    wanted = (*_STEPS, *(data.get("bootstrap") or ()))
    steps = [step for step in get_args(bootstrap_settings.Step) if step in wanted]
    box.steps = f"bootstrap={json.dumps(steps)}"
    chosen = Hosts(hosts.inventory, (*hosts.overrides, box.steps), hosts.limit)
    box.readiness = chosen.ask(readiness, password=box.login.password).answers.get(box.name)
    if box.readiness is None:
        return False
    desired = box.readiness.desired
    box.endpoints = _endpoints(PlannedHost(desired.plan, desired.catalog, data=data))
    if box.readiness.findings:
        echo(text(box.readiness.findings, paint=paint), err=True)
    return not finding.errors(box.readiness.findings)


def _endpoints(planned: PlannedHost) -> list[Endpoint]:
    key = Key(VARIABLE, planned.plan.settings.api_key_source)
    return [
        endpoint_of(planned.plan, service, planned.catalog, planned.address, key)
        for service in planned.plan.services
        if not service.follower
    ]


def _answered(planned: PlannedHost, *, moved: bool) -> bool:
    """Send a real question to a box, and print the next steps; return whether the box answered."""
    host, endpoints = planned.plan.host, _endpoints(planned)
    chats = any(endpoint.chats for endpoint in endpoints)
    asks = next(offered("question"), None) if chats else None
    echo(f"{click.style(host, fg='green')} serves.{f' Question: {_PROMPT}' if asks else ''}")
    ok = asks is None or asks({host: planned}, _PROMPT)
    key, folder = pasted(planned.plan.settings.api_key_source), str(Path.cwd()) if moved else ""
    facts = {"key": key, "folder": folder, "quote": shlex.quote}
    page = templates.template("plan/answer.txt.j2").render(host=host, endpoints=endpoints, **facts)
    click.echo(page, nl=False)
    return ok
