"""Weights: what of a model's repository is not fetched, because it runs code when it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.resolve.pickles import pickle_symptom


@check("pickle")
def _pickles(host: HostFacts) -> Iterator[Symptom]:
    settings = host.plan.settings
    for service in host.plan.services:
        for reference in service.models:
            model = host.desired.resolution.model(reference)
            symptom = pickle_symptom(model, settings.allowed_pickles)
            if symptom is not None:
                yield replace(symptom, service=service.name, key=None)
