"""A recipe from a GGUF file's own header: every value with its origin."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from sparkwright.catalog import ArgumentValue, Model, Needs, entries, gpus
from sparkwright.engines import derived_entries
from sparkwright.engines.derivation import Advice, Derived, DerivedFact, Subject, questions
from sparkwright.engines.llamacpp import limits, memory
from sparkwright.findings.check import Symptom
from sparkwright.text.sizes import GIB

#: The shortest context that justifies layers in the GPU's memory.
_LEAST_CONTEXT = 8192
#: Tokens in a batch of a pooling model: a text must fit into a batch.
_POOLED_BATCH = 2048
_Argument = tuple[str, tuple[ArgumentValue, str]]


def derive(subject: Subject, advice: Advice) -> Derived:
    """Make a recipe of a GGUF file of a repository."""
    if subject.facts.gguf is None:
        texts = Path(__file__).with_name("questions.yaml")
        asked = questions(texts, subject, advice, [Symptom("weights")])
        return Derived(subject.service, questions=tuple(asked))
    model = derived_entries.model_of(subject, tuple(_capabilities(subject)))
    arguments, service = dict(_arguments(subject, model)), subject.service
    given = {key: value for key, (value, _) in arguments.items()}
    weights = memory.weights_gib(model, {}) or 0.0
    in_ram = weights - (memory.weights_gib(model, {**given, **service.arguments}) or 0.0)
    cache = (memory.kv_bytes(model, given, _LEAST_CONTEXT) or 0) / GIB
    pool, least = _pool_gib(subject), weights - in_ram + cache + memory.OVERHEAD_GIB
    unified = subject.gpu.unified
    needs = Needs(
        compute_caps=(subject.gpu.cap,),
        memory_gib=110 if unified else round(8 + in_ram, 1),
        vram_gib=None if unified else pool or math.ceil(least * 10) / 10,
    )
    title = f"{subject.repository}, derived from its file's header"
    recipe = derived_entries.recipe_of(subject, model, arguments, needs, title=title)
    return derived_entries.derived(
        subject, model, recipe, arguments, _facts(subject, model, in_ram)
    )


def _capabilities(subject: Subject) -> Iterator[entries.Capability]:
    """Capabilities that the header claims and that llama-server separates in its answers."""
    if subject.facts.gguf and subject.facts.gguf.projector:
        yield "image"
    yield from derived_entries.capabilities_of(subject.facts.template)


def _pool_gib(subject: Subject) -> float | None:
    """Memory of the GPU for this service, among all services that name a model; None if unknown."""
    whole, settings = subject.gpu.vram_gib, subject.settings
    if subject.gpu.unified:
        whole = gpus.LEAST_SPARK_GIB - gpus.SYSTEM_GIB - sum(settings.sidecars.values())
    named = sum(service.model is not None for service in settings.services.values())
    prompts = memory.prompts_gib(subject.service.arguments) if subject.gpu.unified else 0.0
    return math.floor((whole / max(1, named) - prompts) * 10) / 10 if whole else None


def _arguments(subject: Subject, model: Model) -> Iterator[_Argument]:
    """Arguments, each with its origin."""
    pool, given = _pool_gib(subject), subject.service.arguments
    header, own = subject.facts.gguf, "sparkwright's default for one box"
    if header and header.pooling:
        batch = min(model.context or _POOLED_BATCH, _POOLED_BATCH)
        name = "reranking" if header.pooling == "rank" else "embeddings"
        yield name, (True, f"pooling type of {subject.config}")
        for key in ("batch_size", "ubatch_size"):
            yield key, (batch, "a text must fit one batch")
    yield "parallel", (limits.AUTO_SLOTS, own)
    yield "kv_unified", (True, "all slots share one context")
    if pool is None:
        return  # llama-server's --fit uses the card's free memory
    # CPU and GPU of a Spark share one pool: layers on the CPU save no memory.
    unified = subject.gpu.unified
    placed = {"n_gpu_layers": "all"} if unified else dict(_placed(model, given, pool))
    where = "the card's memory" if placed == {"n_gpu_layers": "all"} else "the card's part"
    yield from ((key, (value, where)) for key, value in placed.items())
    fits = memory.fitting_context(model, {**placed, **given}, pool)
    if fits and fits == model.context:
        yield "ctx_size", (fits, subject.config)
    elif fits:
        most = f"{subject.config} has {model.context}"
        yield "ctx_size", (fits, f"the longest context that fits beside the weights; {most}")
    elif model.context:
        yield "ctx_size", (min(model.context, _LEAST_CONTEXT), own)


def _placed(
    model: Model, given: dict[str, ArgumentValue | None], pool: float
) -> Iterator[tuple[str, ArgumentValue]]:
    """Arguments that leave the excess to the CPU: experts of a mixture, otherwise layers."""
    header, context = model.gguf, min(model.context or _LEAST_CONTEXT, _LEAST_CONTEXT)
    cache = (memory.kv_bytes(model, given, context) or 0) / GIB
    room = pool - memory.OVERHEAD_GIB - cache
    layers = len(header.layer_bytes) if header else 0

    def first(name: str, counts: Iterable[int]) -> int | None:
        sizes = ((count, memory.weights_gib(model, {name: count}) or 0) for count in counts)
        return next((count for count, size in sizes if size <= room), None)

    by_cpu = first("n_cpu_moe", range(layers + 1)) if header and header.expert_bytes else None
    if not layers or (memory.weights_gib(model, {}) or 0) <= room:
        yield "n_gpu_layers", "all"
    elif by_cpu is not None:
        yield "n_gpu_layers", "all"
        yield "n_cpu_moe", by_cpu
    else:
        yield "n_gpu_layers", first("n_gpu_layers", range(layers + 1, -1, -1)) or 0


def _facts(subject: Subject, model: Model, in_ram: float) -> Iterator[DerivedFact]:
    """Facts that are shown beside the arguments."""
    header, config = subject.facts.gguf, subject.config
    yield from derived_entries.facts_of_host(subject)
    if header is None:
        return
    yield DerivedFact("file", header.file, f"{subject.repository}@{subject.resolved.commit[:7]}")
    yield DerivedFact("architecture", header.architecture, config)
    yield DerivedFact("quantization", header.quantization or "unnamed", config)
    yield DerivedFact("weights", f"{memory.weights_gib(model, {}) or 0:.1f} GiB", config)
    if in_ram > memory.WORTH_A_WORD:
        origin = "weights that do not fit the card; the CPU computes with them"
        yield DerivedFact("in the host's memory", f"{in_ram:.1f} GiB of the weights", origin)
    yield DerivedFact("context", str(model.context or "-"), config)
    can = "vectors or scores" if header.pooling else ", ".join(("text", *model.capabilities))
    yield DerivedFact("can do", can, f"{config}, chat template")
    yield from derived_entries.facts_of_sampling(subject)
    if not subject.facts.chat_template and not header.pooling:
        yield DerivedFact(
            "chat template", "chatml", "llama-server's default: the file has no template"
        )
