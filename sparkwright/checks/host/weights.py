"""Weights: what of a model's repository is not fetched, because it runs code when it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.host.facts import HostCheck
from sparkwright.findings.finding import Finding, Subject
from sparkwright.resolve.pickles import finding


def check(host: HostCheck) -> Iterator[Finding]:
    """Pickles of the planned models."""
    settings = host.plan.settings
    for service in host.plan.services:
        for reference in service.models:
            model = host.desired.resolution.model(settings.hub_endpoint, reference)
            found = finding(model, settings.allowed_pickles)
            if found is not None:
                yield replace(found, subject=Subject(service=service.name))
