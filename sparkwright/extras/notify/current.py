"""Present findings, as a notice may state them: words of ours, and figures.

What a host says may hold a log's line, and with it a key or a prompt. Of its words nothing passes
but figures in the forms that the watch writes, ids of known checks and names of planned services.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.checks.service.watch import reported
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding, errors_first
from sparkwright.results.status import Deployment
from sparkwright.text.lock_owner import age
from sparkwright.text.shipped_yaml import beside

_FIGURES = re.compile(
    "|".join(beside(__file__, "figures.yaml")).replace("SPAN", "[0-9]{1,6} (?:s|min|h|d)")
)
_SERVICE = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_RELEASE = re.compile("[0-9a-f]{12}")
#: Findings of this command itself.
TEXTS = load(Path(__file__).with_name("checks.yaml"))
#: That no host could be asked at all.
UNANSWERED = TEXTS["fleet-silent"].finding(Symptom())
#: Seconds after a switch within which it is suspected first.
_RECENT = 86400.0


def current(
    deployments: Mapping[str, Deployment], silent: Iterable[str] = ()
) -> tuple[list[Finding], frozenset[str]]:
    """Everything that is wrong, errors first; and the hosts of which nothing is known now.

    Args:
        silent: hosts that did not answer.

    Of a host that somebody is at work on nothing is said: a switch stops services on purpose.
    """
    findings = [TEXTS["host-silent"].finding(Symptom(host=host)) for host in silent]
    unknown = {finding.subject.host or "" for finding in findings}
    for host, deployment in deployments.items():
        if deployment.lock or (deployment.switch and deployment.switch.step != "ended"):
            unknown.add(host)
        else:
            findings += _of(host, deployment)
            # Without a plan it is not known what must run.
            unknown |= set() if deployment.plan_known else {host}
    return errors_first(findings), frozenset(unknown)


def _of(host: str, seen: Deployment) -> Iterator[Finding]:
    symptoms = list(reported(seen.watch, seen.now))
    named = {*(symptom.service for symptom in symptoms), *seen.sleeping}
    for name in seen.planned:
        status = seen.services.get(name)
        stopped = status is None or status.unit.get("ActiveState") == "inactive"
        if stopped and name not in named:
            symptoms.append(Symptom("stopped", service=name))
    # Without a plan the names of what was deployed are all there is.
    names = list(seen.planned if seen.plan_known else filter(_SERVICE.fullmatch, seen.services))
    for symptom in symptoms:
        # Without a word of the host's.
        service = symptom.service if symptom.service in names else None
        figures = _FIGURES.search(str(symptom.values.get("observed", "")))
        observed = [figures[0] if figures else "", _switched(service, seen) if service else ""]
        text = ", ".join(filter(None, observed))
        bare = Symptom(host=host, service=service, severity=symptom.severity)
        finding = CHECKS.texts.get(symptom.check, TEXTS["unknown"]).finding(bare)
        yield replace(finding, observed=text)


def _switched(service: str, seen: Deployment) -> str:
    """The last switch of a service, where it is not long ago: what changed is suspected first."""
    last = next((entry for entry in reversed(seen.history) if entry.service == service), None)
    if last is None or not 0 <= seen.now - last.at <= _RECENT:
        return ""
    if not all(map(_RELEASE.fullmatch, filter(None, (last.from_release, last.to)))):
        return ""
    return f"release {last.from_release or 'none'} -> {last.to} {age(seen.now - last.at)} ago"
