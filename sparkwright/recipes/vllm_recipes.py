"""vLLM's own recipes (vllm-project/recipes): a file is a model with variants."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkwright.catalog.gpus import FAMILIES, GPUS, LEAST_SPARK_GIB, VRAM
from sparkwright.recipes.recipe import Foreign, Options, Remarks, Text, Unfit, texts
from sparkwright.recipes.yaml_mapping import environment, line, mapping, positive, strings
from sparkwright.text.sizes import GIB

#: The only strategies that are read: one box with all of its GPUs; and several boxes with one GPU
#: each, if the recipe allows this for the hardware.
_STRATEGY, _SPREAD = "single_node_tp", "multi_node_tp"
_GRANTED = ("supported", "verified")
#: Placeholders for each host's own network in a recipe's variables.
_NETWORK = ("$IFACE_NAME", "$IB_IF", "$HEAD_IP")


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether a file has the keys of a recipe of vLLM."""
    return isinstance(data.get("model"), dict) and isinstance(data.get("variants"), dict)


def read(text: Text, data: dict[str, Any], options: Options) -> Iterator[Foreign | Unfit]:
    """Read each variant as a recipe; a variant for other hardware is refused.

    Raises:
        Unfit: the whole recipe is for another engine, or a requested variant does not exist.
    """
    if data.get("omni"):
        raise Unfit("omni", "vLLM-Omni", "sparkwright serves only text with vLLM")
    variants = mapping(data, "variants")
    for name in options.variants:
        if name not in variants:
            remedy = f"name one of its variants: {', '.join(map(line, variants))}"
            raise Unfit("variants", f"there is no variant {name!r}", remedy)
    for name in options.variants or variants:
        try:
            yield _variant(text, data, name, mapping(variants, name), options)
        except Unfit as refused:
            yield refused


def _variant(
    text: Text, data: dict[str, Any], name: str, variant: dict[str, Any], options: Options
) -> Foreign:
    remarks = Remarks(f"{text.source} ({name})")
    model, about, tables = mapping(data, "model"), mapping(data, "meta"), texts()["vllm_recipes"]
    family = FAMILIES[GPUS[options.gpu]]
    # Keys of the GPU, the most specific key first.
    box, *kinds = keys = (family.vllm_recipes[options.gpu], family.generation, "nvidia")
    _refuse_other_hardware(variant, box, f"variants.{name}")
    spread = mapping(mapping(data, "strategy_hardware"), _SPREAD).get(box) in _GRANTED
    strategy = mapping(mapping(data, "strategy_overrides"), _SPREAD if spread else _STRATEGY)
    container = _image(model.get("docker_image"))
    given, variables = strings(model, "base_args"), environment(mapping(model, "base_env"))
    part = _by_kind(strategy, kinds)
    wide = [part] if part else [_by_kind(data, kinds), _by_kind(variant, kinds)]
    exact = [mapping(mapping(part, "hardware_overrides"), box) for part in (variant, strategy)]
    for layer in (variant, strategy, *wide, *exact):
        given += [*strings(layer, "extra_args"), *strings(layer, "vllm_args")]
        variables |= environment(mapping(layer, "extra_env") or mapping(layer, "env"))
        container = _image(layer.get("docker_image")) or container
    for variable in [name for name, value in variables.items() if value in _NETWORK]:
        remarks.note("network", f"env.{variable}", f"{variable}={variables.pop(variable)}")
    given += _features(data, variant, keys, remarks)
    if strings(about, "tasks") == ["embedding"]:  # the page gives every pooling model this task
        given = ["--runner", "pooling", *given]
    if container is None and model.get("nightly_required"):
        container = "vllm/vllm-openai:nightly"
    for key, reason in tables["left_out"].items():
        value = model.get(key) or data.get(key)
        if value and any(value.values() if isinstance(value, dict) else [True]):
            remarks.left_out(key, f"{key}: {line(value)}", reason)
    size, tp = variant.get("vram_minimum_gb"), variant.get("tp") or strategy.get("tp")
    if isinstance(tp, dict):  # keyed by hardware
        tp = next((tp[kind] for kind in (*keys, "default") if kind in tp), None)
    if spread and isinstance(size, int | float):  # as many GPUs as hold the model
        tp = max(2, math.ceil(size * 1e9 / GIB / VRAM.get(options.gpu, LEAST_SPARK_GIB)))
    title = str(about.get("title") or text.name.rpartition("/")[2])
    slug = f"{about.get('slug') or title}{'' if name == 'default' else f'-{name}'}"
    listed = "name" if box in mapping(about, "hardware") else "do not name"
    precision = variant.get("precision") or name
    return Foreign(
        name=slug,
        longer_name=f"{about.get('provider') or 'vllm'}-{slug}",
        title=line(f"{title}, {precision}: {variant.get('description', '')}"),
        text=text,
        remarks=remarks,
        model=str(variant.get("model_id") or model.get("model_id")),
        container=container,
        arguments=tuple(given),
        environment=variables,
        least_vllm=str(variant.get("min_vllm_version") or model.get("min_vllm_version") or "0"),
        gpus=tp if isinstance(tp, int) and tp > 0 else 1,
        vram_gib=size * 1e9 / GIB if isinstance(size, int | float) else None,
        context=positive(model.get("context_length")),
        notes=[f"vLLM's recipes {listed} {box} for this model"],
    )


def _refuse_other_hardware(variant: dict[str, Any], box: str, key: str) -> None:
    listed = strings(variant, "supported_hardware")
    if listed and box not in listed:
        observed = f"for {', '.join(map(line, listed))}"
        raise Unfit(f"{key}.supported_hardware", observed, f"the recipe does not list {box}")
    brand = str(mapping(variant, "precision_hardware").get("brand") or "NVIDIA")
    if brand.lower() != "nvidia":
        raise Unfit(
            f"{key}.precision_hardware", f"for {line(brand)}", "sparkwright needs NVIDIA's GPUs"
        )


def _by_kind(data: dict[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """Overrides for the first of these kinds of hardware (generation, brand) with overrides."""
    overrides = mapping(data, "hardware_overrides")
    return next((mapping(overrides, kind) for kind in kinds if overrides.get(kind)), {})


def _features(
    data: dict[str, Any], variant: dict[str, Any], keys: Sequence[str], remarks: Remarks
) -> list[str]:
    """Arguments of every feature that is on by default: a feature that is not opt-in, or that the
    variant turns on by naming its mode.
    """
    opt_in, chosen = strings(data, "opt_in_features"), mapping(variant, "default_modes")
    given: list[str] = []
    for name, feature in mapping(data, "features").items():
        part = feature if isinstance(feature, dict) else {}
        modes = mapping(part, "modes")
        if name in opt_in and name not in chosen:
            shown = " ".join(strings(part, "args")) or f"one of {', '.join(modes)}"
            remarks.note("opt-in", f"features.{name}", f"{name}: {line(shown)}")
            continue
        if modes:
            names = (str(chosen.get(name)), str(part.get("default_mode")), *modes)
            part = mapping(modes, next(mode for mode in names if mode in modes))
        layers = mapping(mapping(part, "hardware_overrides"), keys[0]), _by_kind(part, keys[1:])
        given += next(filter(None, (strings(layer, "args") for layer in (*layers, part))), [])
    return given


def _image(value: Any) -> str | None:
    """NVIDIA's image, with CUDA 13 if the recipe has images by CUDA version."""
    while isinstance(value, dict):
        value = next((value[key] for key in ("nvidia", "cu130", "cu129") if key in value), None)
    return value.strip() or None if isinstance(value, str) else None
