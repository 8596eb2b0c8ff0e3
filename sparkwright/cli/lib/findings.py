"""Findings on the command line."""

from collections.abc import Sequence

from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import data
from sparkwright.findings.render import paint as paint


def print_findings(findings: Sequence[Finding], text: str, *, as_json: bool) -> None:
    """Print findings as JSON, or as the given text."""
    if as_json:
        print_json(data(findings))
    elif text:
        echo(text)
