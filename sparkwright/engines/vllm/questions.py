"""Questions that a model's files leave open, each with its reason and the valid answers."""

from collections.abc import Iterator
from pathlib import Path

from sparkwright.engines.derivation import Advice, Subject
from sparkwright.engines.derivation import questions as worded
from sparkwright.engines.tables import release
from sparkwright.engines.vllm.table import nearest, table
from sparkwright.findings.check import Symptom
from sparkwright.findings.finding import Finding


def questions(subject: Subject, advice: Advice) -> Iterator[Finding]:
    """Everything that the user has to answer before the service can be planned."""
    texts = Path(__file__).with_name("questions.yaml")
    return worded(texts, subject, advice, _open(subject, advice))


def _open(subject: Subject, advice: Advice) -> Iterator[Symptom]:
    facts, given = subject.facts, subject.service.arguments
    if not subject.weights or facts.gguf:
        gguf = any(".gguf" in file for file in subject.resolved.files)
        yield Symptom("weights", kind="GGUF" if gguf else "no")
    if facts.architecture is None:
        yield Symptom("architecture")
    if facts.code and "trust_remote_code" not in given:
        yield Symptom("code", files=", ".join(facts.code))
    # Mistral's own tokenizer templates itself.
    mistral = "tekken.json" in subject.resolved.files
    if not facts.chat_template and "chat_template" not in given and not mistral:
        yield Symptom("chat-template")
    if facts.context is None and "max_model_len" not in given:
        yield Symptom("context")
    least, own = advice.least_version, subject.version
    # Of an older image, and nobody has named a tag.
    if least and own and not subject.service.image_tag and release(own) < release(least):
        yield Symptom("version")
    method = facts.quantization
    if method and not subject.form and own and "quantization" not in given:
        names = table(nearest(own)).names["quantization"]
        if method not in names:
            yield Symptom("quantization", vllm=nearest(own), names=", ".join(names))
