"""Models without a recipe: SGLang derives no arguments from a model's own files."""

from sparkwright.engines.derivation import Advice, Derived, Subject
from sparkwright.findings.user_error import Messages

_MESSAGES = Messages(__file__)


def derive(subject: Subject, advice: Advice) -> Derived:
    """Ask for a recipe: parsers and the drafting of a model are in no file of it."""
    del advice
    facts = {"repository": subject.repository}
    question = _MESSAGES.mistake("no-recipe", f"{subject.where}.recipe", subject.host, **facts)
    return Derived(subject.service, questions=(question,))
