"""Engines, each in its own folder, found through one table."""

from functools import cache
from importlib import import_module
from pathlib import Path

from sparkwright.engines.engine import Engine
from sparkwright.text import shipped_yaml

#: Name of an engine in images of the catalog -> its module.
ENGINES = {
    "vllm": "sparkwright.engines.vllm.engine",
    "llamacpp": "sparkwright.engines.llamacpp.engine",
    "sglang": "sparkwright.engines.sglang.engine",
}

#: The engine of a service without recipe and image.
DEFAULT = "vllm"


def serving(form: str | None) -> list[str]:
    """Engines that serve a format of weights, the default engine first; an unknown format counts as
    a kind of safetensors.
    """
    return [name for name in ENGINES if (form or "bf16") in engine(name).formats]


def stock_image(name: str) -> str:
    """The catalog's image for a model without a recipe; empty for an unknown engine."""
    return engine(name).stock_image if name in ENGINES else ""


@cache
def engine(name: str) -> Engine:
    """The engine of this name.

    Raises:
        KeyError: the engine is unknown.
    """
    module: Engine = import_module(ENGINES[name]).ENGINE
    return module


def metric_names() -> dict[str, str]:
    """Names of every engine's metrics -> the neutral names of ``sparkwright.host.lib.metrics``."""
    metrics = [engine(name).metrics for name in ENGINES]
    return {own: neutral for each in metrics for neutral, own in each.items()}


def log_causes() -> list[Path]:
    """Every engine's file of log lines with their causes, without loading an engine."""
    folders = (module.split(".")[-2] for module in ENGINES.values())
    return [Path(__file__).parent / folder / "causes.yaml" for folder in folders]


def log_patterns(kind: str) -> dict[str, str]:
    """Patterns of lines that engines log in normal operation -> their meaning, without loading an
    engine.

    Args:
        kind: ``boot``, lines that begin a phase of a boot, or ``probes``, access lines of requests
            that sparkwright itself sends.
    """
    files = [path.with_name("log.yaml") for path in log_causes()]
    return {key: text for path in files for key, text in shipped_yaml.read(path)[kind].items()}


def template_marks() -> frozenset[str]:
    """Texts to search for in a model's chat template."""
    return frozenset(mark for name in ENGINES for mark in engine(name).template_marks())


def client_routes(name: str | None = None) -> tuple[tuple[str, str], ...]:
    """Routes that a proxy passes to an engine; without a name, the routes of every engine."""
    names = ENGINES if name is None else [name]
    return tuple(dict.fromkeys(route for each in names for route in engine(each).routes.clients))


def inference_routes() -> tuple[tuple[str, str], ...]:
    """Routes of every engine that cost computation or reveal information."""
    routes = [route for name in ENGINES for route in engine(name).routes.inference]
    return tuple(dict.fromkeys(routes))
