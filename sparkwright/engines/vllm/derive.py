"""A recipe from a model's own files: every value with its origin; and parsers of tool calls and
reasoning, from these files.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from sparkwright.catalog import ArgumentValue, Model, Needs, data, entries
from sparkwright.engines import derived_entries
from sparkwright.engines.arguments import amount
from sparkwright.engines.derivation import Advice, Derived, DerivedFact, Subject
from sparkwright.engines.derivation import questions as worded
from sparkwright.engines.tables import release
from sparkwright.engines.vllm import memory
from sparkwright.engines.vllm.table import defaults, nearest, table
from sparkwright.findings import check, finding
from sparkwright.text.shipped_yaml import beside

#: Variable of templates that switches the thinking of a request.
SWITCH = "enable_thinking"
Kind = Literal["tools", "reasoning"]
ARGUMENT: Mapping[Kind, str] = {"tools": "tool_call_parser", "reasoning": "reasoning_parser"}


def questions(subject: Subject, advice: Advice) -> Iterator[finding.Finding]:
    """Questions that the user must answer before the service can be planned."""
    texts = Path(__file__).with_name("questions.yaml")
    return worded(texts, subject, advice, _open(subject, advice))


def _open(subject: Subject, advice: Advice) -> Iterator[check.Symptom]:
    facts, given = subject.facts, subject.service.arguments
    if not subject.weights or facts.gguf:
        gguf = any(".gguf" in file for file in subject.resolved.files)
        yield check.Symptom("weights", kind="GGUF" if gguf else "no")
    if facts.architecture is None:
        yield check.Symptom("architecture")
    if facts.code and "trust_remote_code" not in given:
        yield check.Symptom("code", files=", ".join(facts.code))
    if facts.task in ("speech", "image"):
        yield check.Symptom("task")
    # Mistral's own tokenizer has the template.
    templated = facts.task or "tekken.json" in subject.resolved.files
    if not facts.chat_template and "chat_template" not in given and not templated:
        yield check.Symptom("chat-template")
    if facts.context is None and "max_model_len" not in given:
        yield check.Symptom("context")
    least, own = advice.least_version, subject.version
    # The recipe is for an older image, and the settings name no tag.
    if least and own and not subject.service.image_tag and release(own) < release(least):
        yield check.Symptom("version")
    method = facts.quantization
    if method and not subject.form and own and "quantization" not in given:
        names = table(nearest(own)).names["quantization"]
        if method not in names:
            yield check.Symptom("quantization", vllm=nearest(own), names=", ".join(names))


#: Number of simultaneous sequences: a household's clients, with room in the KV cache for long
#: sequences.
SEQUENCES = 16
#: Seconds of a first boot for each GiB of weights, beyond the default for small models.
_SECONDS_PER_GIB = 12


def derive(subject: Subject, advice: Advice) -> Derived:
    """Make a recipe of a repository."""
    if unanswered := tuple(questions(subject, advice)):
        return Derived(subject.service, questions=unanswered)
    parsers = {name: _parser(subject, kind, advice) for kind, name in ARGUMENT.items()}
    model = derived_entries.model_of(subject, tuple(_capabilities(subject, parsers, advice)))
    arguments = dict(_arguments(subject, model, parsers, advice))
    recipe_and = "vLLM's recipe and " if advice.source else ""
    recipe = derived_entries.recipe_of(
        subject,
        model,
        arguments,
        _needs(subject, model),
        title=f"{subject.repository}, derived from {recipe_and}its files",
        source=f"{subject.config}; {advice.source}" if advice.source else subject.config,
        environment=dict(advice.environment),
        boot_seconds=max(900, round(memory.weights_gib(model) * _SECONDS_PER_GIB)),
    )
    return derived_entries.derived(
        subject, model, recipe, arguments, _facts(subject, model, advice)
    )


def _parser(subject: Subject, kind: Kind, advice: Advice) -> str | None:
    """Parser of the service's arguments, of vLLM's recipe, or of the family, in this order.

    The result is None if no parser is known, or if this version of vLLM lacks the parser.
    """
    given, facts = {**advice.arguments, **subject.service.arguments}, subject.facts
    if ARGUMENT[kind] in given:
        named = given[ARGUMENT[kind]]
        return named if isinstance(named, str) else None
    for mark, name in families().get(facts.model_type or "", {}).get(kind, {}).items():
        if not mark or mark in facts.template:
            version = subject.version
            names = table(nearest(version)).names[ARGUMENT[kind]] if version else (name,)
            return name if name in names else None
    return None


def _capabilities(
    subject: Subject, parsers: Mapping[str, str | None], advice: Advice
) -> Iterator[entries.Capability]:
    """Capabilities that the model's files claim and that vLLM separates in its answers."""
    drafting = advice.arguments.get("speculative_config")
    if isinstance(drafting, dict) and str(drafting.get("method", "")).endswith("mtp"):
        yield "mtp"
    if subject.facts.vision:
        yield "image"
    if parsers["tool_call_parser"]:
        yield "tools"
    if parsers["reasoning_parser"]:
        yield "thinking"
        if SWITCH not in subject.facts.template:
            yield "thinking-only"


_Argument = tuple[str, tuple[ArgumentValue, str]]


def _arguments(
    subject: Subject, model: Model, parsers: Mapping[str, str | None], advice: Advice
) -> Iterator[_Argument]:
    """Arguments, each with its origin."""
    given, gpu = {**advice.arguments, **subject.service.arguments}, subject.gpu
    if gpu.unified:
        share = memory.spark_share(subject.settings, subject.catalog)
        origin = "a Spark's memory less system, sidecars and other services"
    else:
        share, origin = memory.DEFAULT_UTILIZATION, "default of vLLM"
        if subject.version:
            version = nearest(subject.version)
            share = amount(defaults(version, model.hybrid)["gpu_memory_utilization"]) or share
            origin = f"image's default (vLLM {version} in {subject.image.name}:{subject.tag})"
    yield "gpu_memory_utilization", (share, origin)
    used = amount(given.get("gpu_memory_utilization")) or share
    yield "max_model_len", _length(subject, model, used, given)
    if model.task in ("embedding", "rerank", "score"):
        yield "runner", ("pooling", f"the hub's task of {subject.repository}")
    yield "max_num_seqs", (SEQUENCES, "sparkwright's default for one box")
    template = f"model_type and chat template of {subject.repository}@{subject.resolved.commit[:7]}"
    if parsers["tool_call_parser"]:
        yield "enable_auto_tool_choice", (True, template)
    for name, parsed in parsers.items():
        if parsed:
            yield name, (parsed, advice.source if name in advice.arguments else template)
    for name, value in advice.arguments.items():
        if name not in parsers and name != "enable_auto_tool_choice":
            yield name, (value, advice.source)


def _length(
    subject: Subject, model: Model, share: float, given: Mapping[str, ArgumentValue | None]
) -> tuple[ArgumentValue, str]:
    """The model's own context, or the longest context that fits."""
    context, pool = model.context, memory.pool_gib(subject.gpu)
    if context is None:
        return "auto", "replaced by the service's max_model_len"
    if pool is None:
        return (
            "auto",
            f"vLLM's auto: the longest context that fits the card; {subject.config} has {context}",
        )
    fits = memory.fitting_context(model, context, share, given, pool)
    if fits is None and not model.kv:
        return "auto", f"vLLM's auto, up to {context}: {subject.config} lacks the KV cache's size"
    if fits is None or fits == context:
        return context, subject.config
    return fits, f"the longest context that fits beside the weights; {subject.config} has {context}"


def _needs(subject: Subject, model: Model) -> Needs:
    caps = (subject.gpu.cap,)
    if subject.gpu.unified:
        return Needs(compute_caps=caps, memory_gib=110)
    # The memory of the named card, otherwise the least memory that the weights need.
    least = memory.least_vram_gib(model, model.context or 8192, subject.service.arguments)
    return Needs(compute_caps=caps, memory_gib=14, vram_gib=memory.pool_gib(subject.gpu) or least)


def _facts(subject: Subject, model: Model, advice: Advice) -> Iterator[DerivedFact]:
    """Facts that are shown beside the arguments."""
    facts, config = subject.facts, subject.config
    yield from advice.facts
    yield from derived_entries.facts_of_host(subject)
    yield DerivedFact("architecture", facts.architecture or "-", config)
    form = facts.quantization or f"none ({facts.dtype or 'bfloat16'})"
    yield DerivedFact("quantization", form, config)
    size = f"{memory.weights_gib(model):.1f} GiB"
    files = f"files of {subject.repository}@{subject.resolved.commit[:7]}"
    yield DerivedFact("weights", size, model.source if model.source != config else files)
    yield DerivedFact("context", str(model.context or "-"), config)
    can = ", ".join(("text", *model.capabilities))
    yield DerivedFact("can do", can, f"{config}, chat template, parsers of vLLM {subject.version}")
    yield from derived_entries.facts_of_sampling(subject)
    if facts.task:
        yield DerivedFact("task", facts.task, f"the hub's task of {subject.repository}")
    elif not facts.chat_template:
        yield DerivedFact("chat template", "the service's own", data.OWN)
    if "tools" not in model.capabilities and "<tool_call>" in facts.template:
        why = "vLLM's parser for the model is unknown; set arguments.tool_call_parser"
        yield DerivedFact("tools", "not served", f"no parser: {why}")


@cache
def families() -> Mapping[str, Mapping[Kind, Mapping[str, str]]]:
    """model_type -> kind of parser -> text of the chat template -> parser, in order."""
    result: dict[str, dict[Kind, dict[str, str]]] = beside(__file__, "families.yaml")
    return result


@cache
def marks() -> tuple[str, ...]:
    """Texts to search for in a chat template."""
    result = {mark for family in families().values() for kind in family.values() for mark in kind}
    return tuple(sorted({*result, SWITCH} - {""}))
