"""``sparkwright notify``: send notices of new, worsened and ended findings, with pyinfra."""

import sys
import time
from dataclasses import asdict, replace

import click

from sparkwright.cli.deployments import deployments
from sparkwright.cli.lib.hosts import Hosts, hosts_argument
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.notices import addresses
from sparkwright.extras.notify import notices
from sparkwright.extras.notify.send import send
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.text.visible import visible_text

DOCUMENT = list[notices.Sent]
_DRY = {"sent": "would be sent"}


@click.command("notify")
@hosts_argument
@click.option("--test", is_flag=True, help="Only send a test to every address.")
@click.option("--dry", is_flag=True, help="Print the notices; send and write nothing.")
@json_option
def command(hosts: Hosts, test: bool, dry: bool, as_json: bool) -> None:
    """Examine every host once, and send new findings to the addresses of `notify`.

    Notices report findings of the watch on the hosts, stopped services, and hosts that do not
    answer, each when it begins, worsens and ends. The command needs `pip install
    'sparkwright[notify]'`. Exit with 1 when a notice could not be sent.
    """
    every = list(hosts.everyone.items())
    targets = addresses(every)
    if not targets:
        raise Messages(__file__).refusal("no-address", "group_data/all.py: notify")
    if test:
        done = notices.try_out(targets, send)
    else:
        try:
            answers = deployments(hosts)
            findings, unknown = notices.current(answers.answers, list(answers.failures))
        except (UserError, click.ClickException, SystemExit) as error:
            echo(str(error), err=True)
            findings, unknown = [notices.UNANSWERED], frozenset(name for name, _ in every)
        if dry:
            record = notices.read(notices.PLACE)
            done = notices.go(targets, record, findings, unknown, time.time(), lambda *_: None)
            done = [replace(each, state=_DRY.get(each.state, each.state)) for each in done]
        else:
            with notices.held(notices.PLACE) as record:
                done = notices.go(targets, record, findings, unknown, time.time(), send)
    if as_json:
        print_json([asdict(each) for each in done])
    for each in [] if as_json else done:
        why = f": {each.why}" if each.why else ""
        text = f"\n{each.title}\n{each.body}" if dry and each.body else ""
        echo(visible_text(f"{each.address}: {each.state}{why}{text}"))
    sys.exit(int(any(each.state == "failed" for each in done)))
