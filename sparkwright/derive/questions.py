"""What a model's files leave open: asked for by name, with the reason and what may be answered."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.catalog.gpus import GPUS
from sparkwright.derive.subject import Subject
from sparkwright.derive.vllm_recipe import Advice, outdated
from sparkwright.engines.vllm.table import nearest, table
from sparkwright.findings import finding
from sparkwright.findings.finding import INPUT, Finding, Severity
from sparkwright.resolve.model_facts import ModelFacts

_OWN_RECIPE = "write it as a recipe: 'sparkwright catalog new recipe NAME --model {}'"


def gpu_question(host: str, where: str, repository: str) -> Finding:
    """The host's GPU is not known."""
    return _asked(
        host, where, f"nothing says which GPU this host has, and {repository} is sized for it",
        "image, memory share and context depend on it",
        f"gpu = one of {', '.join(sorted(GPUS))} in group_data or for the host",
    )  # fmt: skip


def questions(subject: Subject, facts: ModelFacts, said: Advice) -> Iterator[Finding]:
    """Everything that has to be said before the service can be planned."""
    host, model = subject.host, subject.repository
    given = subject.service.arguments
    if not subject.weights:
        kind = "GGUF" if any(".gguf" in file.path for file in subject.resolved.files) else "no"
        yield _asked(
            host, f"{subject.where}.model",
            f"{model} has {kind} weights, and vLLM is given safetensors",
            "weights are safetensors: other formats run code when they are loaded, or are slow",
            "a repository of the same model with .safetensors files",
        )  # fmt: skip
    if facts.architecture is None:
        yield _asked(
            host, f"{subject.where}.model", f"{subject.said} names no architecture",
            "vLLM picks its implementation by 'architectures'",
            "a repository in transformers' form, or "
            + _OWN_RECIPE.format(model),
        )  # fmt: skip
    if facts.code and "trust_remote_code" not in given:
        yield _asked(
            host, f"{subject.where}.arguments.trust_remote_code",
            f"{subject.said} asks for Python code of the repository ({', '.join(facts.code)})",
            "code of a repository runs in the container, and is never turned on by itself",
            "False (vLLM's own implementation, where it has one), or True, once you have read it: "
            "it needs a lock, and a catalog entry that names the files",
        )  # fmt: skip
    if not facts.chat_template and "chat_template" not in given and not subject.mistral:
        yield _asked(
            host, f"{subject.where}.arguments.chat_template",
            f"{model} has no chat template: chat requests can't be answered",
            "without one, vLLM refuses /v1/chat/completions; a base model has none",
            "an instruct model's repository, or the path of a template in the image, such as "
            "/vllm-workspace/examples/template_chatml.jinja",
        )  # fmt: skip
    if facts.context is None and "max_model_len" not in given:
        yield _asked(
            host, f"{subject.where}.arguments.max_model_len",
            f"{subject.said} does not say how long a context the model was made for",
            "memory is planned by it", "a number of tokens, as the model's card gives it",
        )  # fmt: skip
    if least := outdated(subject, said):
        yield _asked(
            host, f"{subject.where}.image_tag",
            f"vLLM's recipe needs vLLM {least}, and {subject.image.name}:{subject.tag} has "
            f"{subject.vllm}",
            f"{said.source} says so", "a tag with that vLLM, or this one, to try it all the same",
        )  # fmt: skip
    yield from _quantization(subject, facts)


def _quantization(subject: Subject, facts: ModelFacts) -> Iterator[Finding]:
    method, vllm = facts.quantization, subject.vllm
    if (
        method is None
        or subject.form
        or vllm is None
        or "quantization" in subject.service.arguments
    ):
        return
    known = table(nearest(vllm)).names["quantization"]
    if method not in known:
        yield _asked(
            subject.host, f"{subject.where}.arguments.quantization",
            f"{subject.said} says quant_method {method}, which vLLM {nearest(vllm)} does not load",
            "vLLM ends at start", f"another repository of the model, or one of {', '.join(known)}",
        )  # fmt: skip


def _asked(host: str, where: str, what: str, why: str, allowed: str) -> Finding:
    file, _, key = where.partition(": ")
    place = finding.Subject(host, None, file, key or None)
    return Finding(INPUT, Severity.ERROR, place, what, reason=why, remedy=allowed)
