"""Questions that a model's files leave open, each with its reason and the valid answers."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.engines.derivation import Advice, Subject
from sparkwright.engines.vllm.table import nearest, release, table
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake

_OWN_RECIPE = "write it as a recipe: 'sparkwright catalog new recipe NAME --model {}'"


def questions(subject: Subject, advice: Advice) -> Iterator[Finding]:
    """Everything that the user has to answer before the service can be planned."""
    facts = subject.facts
    host, model = subject.host, subject.repository
    given = subject.service.arguments
    if not subject.weights:
        kind = "GGUF" if any(".gguf" in path for path in subject.resolved.files) else "no"
        yield _question(
            host, f"{subject.where}.model",
            f"{model} has {kind} weights, and vLLM is given safetensors",
            "weights are safetensors: other formats run code when they are loaded, or are slow",
            "a repository of the same model with .safetensors files",
        )  # fmt: skip
    if facts.architecture is None:
        yield _question(
            host, f"{subject.where}.model", f"{subject.config} names no architecture",
            "vLLM picks its implementation by 'architectures'",
            "a repository in transformers' form, or "
            + _OWN_RECIPE.format(model),
        )  # fmt: skip
    if facts.code and "trust_remote_code" not in given:
        yield _question(
            host, f"{subject.where}.arguments.trust_remote_code",
            f"{subject.config} asks for Python code of the repository ({', '.join(facts.code)})",
            "code of a repository runs in the container, and is never turned on by itself",
            "False (vLLM's own implementation, where it has one), or True, once you have read it: "
            "it needs a lock, and a catalog entry that names the files",
        )  # fmt: skip
    if not facts.chat_template and "chat_template" not in given and not subject.mistral:
        yield _question(
            host, f"{subject.where}.arguments.chat_template",
            f"{model} has no chat template: chat requests can't be answered",
            "without one, vLLM refuses /v1/chat/completions; a base model has none",
            "an instruct model's repository, or the path of a template in the image, such as "
            "/vllm-workspace/examples/template_chatml.jinja",
        )  # fmt: skip
    if facts.context is None and "max_model_len" not in given:
        yield _question(
            host, f"{subject.where}.arguments.max_model_len",
            f"{subject.config} does not say how long a context the model was made for",
            "memory is planned by it", "a number of tokens, as the model's card gives it",
        )  # fmt: skip
    if least := _outdated(subject, advice):
        yield _question(
            host, f"{subject.where}.image_tag",
            f"vLLM's recipe needs vLLM {least}, and {subject.image.name}:{subject.tag} has "
            f"{subject.version}",
            f"{advice.source} says so", "a tag with that vLLM, or this one, to try it all the same",
        )  # fmt: skip
    yield from _quantization(subject)


def _outdated(subject: Subject, advice: Advice) -> str | None:
    """The vLLM that a recipe needs, where the image's is older and nobody has named a tag."""
    least, own = advice.least_version, subject.version
    if not least or not own or subject.service.image_tag or release(own) >= release(least):
        return None
    return least


def _quantization(subject: Subject) -> Iterator[Finding]:
    method, vllm = subject.facts.quantization, subject.version
    given = "quantization" in subject.service.arguments
    if method is None or subject.form or vllm is None or given:
        return
    names = table(nearest(vllm)).names["quantization"]
    if method not in names:
        yield _question(
            subject.host, f"{subject.where}.arguments.quantization",
            f"{subject.config} says quant_method {method}, "
            f"which vLLM {nearest(vllm)} does not load",
            "vLLM ends at start", f"another repository of the model, or one of {', '.join(names)}",
        )  # fmt: skip


def _question(host: str, where: str, problem: str, reason: str, answers: str) -> Finding:
    return mistake(where, problem, answers, host, reason=reason)
