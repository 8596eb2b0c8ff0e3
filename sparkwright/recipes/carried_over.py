"""Convert an imported recipe's arguments: kept arguments, dropped arguments, and the share of
one host.
"""

import math
import re
from typing import Any

from sparkwright.catalog.data import ArgumentValue
from sparkwright.catalog.gpus import GPUS, LEAST_SPARK_GIB, MOST_ON_GB10, VRAM, unified
from sparkwright.engines.tables import release
from sparkwright.recipes.recipe import Foreign, Options
from sparkwright.recipes.yaml_mapping import line

#: Memory share of a Spark for a recipe without a share.
_SHARE = 0.8
#: vLLM's own image, its working folder, and its templates there.
_STOCK, _WORKSPACE = "vllm/vllm-openai", "/vllm-workspace/"
_TEMPLATE = re.compile(r"examples/tool_chat_template_[\w.-]+\.jinja")
#: DFlash's two limits, which decide its budget of tokens.
_DFLASH = {"max_num_seqs": 16, "max_num_batched_tokens": 32768}


def settled(
    foreign: Foreign, values: dict[str, Any], model: str, version: str | None,
    options: Options,
) -> dict[str, Any]:  # fmt: skip
    """The recipe's arguments, with mappings unchanged.

    Args:
        model: the served repository.
        version: version of the engine in its image; None if unknown.
    """
    remarks, code = foreign.remarks, {"trust_remote_code"} if options.remote_code else set()
    if _TEMPLATE.fullmatch(template := str(values.get("chat_template"))):
        image = options.image or foreign.container or _STOCK
        values = {**values, "chat_template": f"{_WORKSPACE * (_STOCK in image)}{template}"}
    kept: dict[str, Any] = {
        name: part
        for name, value in values.items()
        if (name, value) != ("tokenizer", model)
        if (part := remarks.listed("arguments", name, value, options.allowed | code)) is not ...
    }
    if kept.get("trust_remote_code"):
        key = "arguments.trust_remote_code"
        remarks.note("remote-code-kept", key, "trust_remote_code is kept")
    for name, plugin in foreign.engine.parser.plugins.items():
        tables = foreign.engine.parser.tables.known_to(version)
        parsers = {parser for table in tables for parser in table.names.get(name, ())}
        if plugin in values and plugin not in kept and name in kept and kept[name] not in parsers:
            shown = f"{name}: {line(kept.pop(name))}"
            remarks.note("of-a-plugin", f"arguments.{name}", shown, plugin=plugin)
            if name == "tool_call_parser":
                kept.pop("enable_auto_tool_choice", None)
    config = kept.get("speculative_config")
    if isinstance(config, dict) and config.get("method") == "dflash":
        for name in [name for name in _DFLASH if name not in kept]:
            kept[name] = _DFLASH[name]
            remarks.note(
                "dflash-limit", f"arguments.{name}", f"not set; sparkwright sets {kept[name]}"
            )
    _spread(foreign, kept, options)
    if unified(GPUS[options.gpu]):
        _share(foreign, kept)
    return kept


def variables(foreign: Foreign, version: str | None, options: Options) -> dict[str, str]:
    """The recipe's environment."""
    note, parser = foreign.remarks.note, foreign.engine.parser
    kept: dict[str, str] = {}
    for name, value in foreign.environment.items():
        entry = parser.variables.get(name, {})
        until = entry.get("until")
        if version and until and release(version) >= release(until):
            facts = {"until": until, "version": version, "instead": entry["instead"]}
            facts["engine"] = parser.title
            note("removed-variable", f"env.{name}", f"{name}={line(value)}", **facts)
        elif foreign.remarks.listed("env", name, value, options.allowed) is not ...:
            kept[name] = value
    return kept


def _spread(foreign: Foreign, kept: dict[str, Any], options: Options) -> None:
    """Set the number of GPUs: the recipe's own number, or as many GPUs as the recipe's size
    needs.
    """
    counts = foreign.engine.gpu_counts
    sizes = {name: kept[name] for name in counts if isinstance(kept.get(name), int)}
    wanted = math.prod(sizes.values())
    note, spark = foreign.remarks.note, unified(GPUS[options.gpu])
    if foreign.may_be_one and not options.cluster and 1 < wanted <= 2:
        for name, size in sizes.items():
            if size > 1:
                note("one-host", f"arguments.{name}", f"{name}: {size}", name=name, size=size)
                del kept[name]
        wanted = 1
    least = max(foreign.gpus, _by_size(foreign.vram_gib, options))
    if wanted < least:
        why = "needs-memory" if foreign.vram_gib and least > foreign.gpus else "needs-gpus"
        wanted, (name, *others) = least, foreign.engine.parallel or ("tensor_parallel_size",)
        kept[name] = least // max(1, math.prod(sizes.get(other, 1) for other in others))
        facts = {"least": least, "gib": foreign.vram_gib}
        note(why, f"arguments.{name}", f"{name}: {kept[name]}", **facts)
    if wanted > 1 and options.cluster:
        note("several-hosts", "ranks", f"{wanted} hosts ({options.gpu})")
    elif wanted > 1:
        remark = "several-sparks" if spark else "several-cards"
        note(remark, "min_nodes", f"{wanted} GPUs ({options.gpu})")


def ranks(foreign: Foreign, arguments: dict[str, ArgumentValue]) -> dict[str, int]:
    """Distribution of a recipe over a cluster's hosts; the sizes are removed from the arguments."""
    parallel = foreign.engine.parallel
    sizes = {part: arguments.pop(argument, 1) for argument, part in parallel.items()}
    return {name: size for name, size in sizes.items() if isinstance(size, int) and size > 1}


def _by_size(needed: float | None, options: Options) -> int:
    """Number of GPUs with enough memory, as a power of two, by which attention heads are
    divisible.
    """
    if needed is None:
        return 1
    capacity = LEAST_SPARK_GIB * MOST_ON_GB10 if unified(GPUS[options.gpu]) else VRAM[options.gpu]
    return 1 << max(0, math.ceil(math.log2(needed / capacity)))


def _share(foreign: Foreign, kept: dict[str, Any]) -> None:
    """Set a memory share that a Spark, with its single memory pool, can provide."""
    program = foreign.engine
    title, usual, name = program.title, program.limits({}).share, program.limit_names.get("share")
    if name is None:
        return
    share = kept[name] if isinstance(kept.get(name), int | float) else None
    if share is None or share > MOST_ON_GB10:
        kept[name] = MOST_ON_GB10 if share else _SHARE
        before = f"{share:g}" if share else f"not set, so {title} uses {usual:g}"
        shown = f"{before}; here {kept[name]:g}"
        foreign.remarks.note("share-of-a-spark", f"arguments.{name}", shown)
