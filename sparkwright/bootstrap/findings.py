"""Findings of bootstrap: obstacles of a step on a host, by texts of findings.yaml."""

from functools import cache, partial

from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.text.shipped_yaml import beside

_texts = cache(partial(beside, __file__, "findings.yaml"))


def finding(cause: str, **values: str) -> Finding:
    """Return the finding of a cause, with values in its texts."""
    texts = {name: text.format(**values) for name, text in _texts()[cause].items()}
    severity = Severity(texts.pop("severity", "error"))
    source = texts.pop("source", "sparkwright")
    return Finding(texts.pop("id"), severity, Subject(), **texts, source=source)
