"""A recipe from a model's own files: for a text model of safetensors with a chat template."""

from collections.abc import Iterator
from math import ceil

from sparkwright.catalog import ArgumentValue, Model, Needs, gpus
from sparkwright.engines.derivation import Advice, Derived, DerivedFact, Subject
from sparkwright.engines.derived_entries import (
    capabilities_of,
    derived,
    facts_of_host,
    facts_of_sampling,
    model_of,
    recipe_of,
)
from sparkwright.engines.kv_cache import kv_bytes
from sparkwright.engines.sglang.data import DATA, DEFAULT_SHARE, SAFE_SHARE
from sparkwright.findings.user_error import Messages
from sparkwright.text.sizes import GIB

_MESSAGES = Messages(__file__)
_STEP = 1024


def derive(subject: Subject, _: Advice) -> Derived:
    """Make a recipe of a repository, or ask the user for a recipe if the repository's files leave a
    question open.
    """
    facts = subject.facts
    stated = subject.form and subject.weights and facts.architecture and facts.context
    special = facts.gguf or facts.hybrid or facts.code or facts.task or facts.vision
    if not stated or special or not facts.chat_template:
        where, named = f"{subject.where}.recipe", subject.repository
        question = _MESSAGES.mistake("no-recipe", where, subject.host, repository=named)
        return Derived(subject.service, questions=(question,))
    model, gpu = model_of(subject, tuple(capabilities_of(facts.template))), subject.gpu
    arguments = dict(_arguments(subject, model))
    least = ceil((model.size_gib or 0) / DEFAULT_SHARE)
    needs = Needs(
        compute_caps=(gpu.cap,),
        memory_gib=110 if gpu.unified else 14,
        vram_gib=None if gpu.unified else gpu.vram_gib or least,
    )
    title = f"{subject.repository}, derived from its files"
    recipe = recipe_of(subject, model, arguments, needs, title=title, status="unproven")
    return derived(subject, model, recipe, arguments, _facts(subject, model))


def _arguments(subject: Subject, model: Model) -> Iterator[tuple[str, tuple[ArgumentValue, str]]]:
    """Arguments, each with its origin."""
    share, context, pool = DEFAULT_SHARE, model.context or 0, subject.gpu.vram_gib
    if subject.gpu.unified:
        settings, pool = subject.settings, gpus.LEAST_SPARK_GIB
        free = 1 - (gpus.SYSTEM_GIB + sum(settings.sidecars.values())) / pool
        share = max(0.01, min(SAFE_SHARE, int(free / len(settings.services) * 100) / 100))
        origin = "a Spark's memory less system and sidecars, in equal parts for its services"
        yield "mem_fraction_static", (share, origin)
    whole, origin = kv_bytes(DATA["kv_bytes"], model, {}, context), subject.config
    room = ((pool or 0) * share - (model.size_gib or 0)) * GIB * 0.9
    if whole and 0 < room < whole:
        origin = f"the longest context that fits beside the weights; {subject.config} has {context}"
        context = int(room / whole * context) // _STEP * _STEP
    yield "context_length", (context, origin)
    for name, capability in (("tool_call_parser", "tools"), ("reasoning_parser", "thinking")):
        if capability in model.capabilities:
            yield name, ("auto", "SGLang chooses the parser by the chat template")


def _facts(subject: Subject, model: Model) -> Iterator[DerivedFact]:
    """Facts that are shown beside the arguments."""
    yield from facts_of_host(subject)
    yield DerivedFact("architecture", subject.facts.architecture or "-", subject.config)
    yield DerivedFact("weights", f"{model.size_gib or 0:.1f} GiB", subject.config)
    yield DerivedFact("can do", ", ".join(("text", *model.capabilities)), subject.config)
    yield from facts_of_sampling(subject)
