"""The catalog's known issues as rules."""

import re
from collections.abc import Iterable, Iterator, Sequence

from sparkwright.catalog import Catalog
from sparkwright.catalog.issues import Issue
from sparkwright.checks.configuration.facts import Context
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity


@check("known-issue")
def known_issues(context: Context) -> Iterator[Symptom]:
    """Return the known issues of image, base image, body and drafter that apply to the service."""
    image, tag = context.image, context.service.image.tag
    issues = [(issue, tag) for issue in (*image.issues, *context.body.issues)]
    if image.build:
        base = context.catalog.images[image.build.base]
        issues += [(issue, image.build.base_tag) for issue in base.issues]
    if context.drafter:
        issues += [(issue, tag) for issue in context.drafter.issues]
    for issue, tagged in issues:
        if facts := issue.met(tagged, context.facts):
            spelt = [context.spelt.get(fact, fact) for fact in facts]
            yield Symptom(
                issue.id,
                severity=Severity(issue.severity),
                observed=f"{issue.problem}{context.defaulted(facts)}",
                key=_key(spelt, context.engine.limit_names.get("speculative", "")),
                remedy=_as_spelt(issue.instead, zip(facts, spelt, strict=True)),
                reason=issue.why,
                source=issue.source,
            )


def _as_spelt(remedy: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a remedy with the spelling that a service uses: vLLM refuses
    ``attention_config.backend`` together with ``attention_backend``.
    """
    for fact, spelt in facts:
        if spelt != fact and spelt.startswith("argument."):
            name, other = (key.removeprefix("argument.") for key in (fact, spelt))
            remedy = re.sub(rf"(?<![\w.]){name}\b", other, remedy)
    return remedy


def all_issues(catalog: Catalog) -> dict[str, Issue]:
    """Every issue of the catalog by id."""
    issues = [issue for image in catalog.images.values() for issue in image.issues]
    issues += [issue for model in catalog.models.values() for issue in model.issues]
    return {issue.id: issue for issue in issues}


def _key(facts: Sequence[str], speculative: str) -> str:
    """The setting to check: the last fact that is an argument or a variable.

    Args:
        speculative: argument with the settings of speculative decoding.
    """
    for fact in reversed(facts):
        kind, _, name = fact.partition(".")
        if kind == "speculative":
            return f"arguments.{speculative}.{name}"
        if kind in ("argument", "environment"):
            return f"{kind}{'s' if kind == 'argument' else ''}.{name}"
    return "recipe"
