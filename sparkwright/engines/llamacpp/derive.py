"""A recipe from a GGUF file's own header."""

from sparkwright.engines.derivation import Advice, Derived, Subject


def marks() -> tuple[str, ...]:
    """Texts that a chat template is searched for: none, llama-server reads the template itself."""
    return ()


def derive(subject: Subject, advice: Advice) -> Derived:
    """Make a recipe of a repository of GGUF files."""
    raise NotImplementedError(subject.repository, advice.source)
