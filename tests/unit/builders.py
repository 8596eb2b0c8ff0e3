"""Complete, valid inputs for unit tests, in which each test changes one place."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.catalog import Catalog, Recipe, load_catalog
from sparkwright.config.parse import parse_settings
from sparkwright.findings.user_error import Problems
from sparkwright.host.lib.gpu import Gpus, parse
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.observe import Observation
from sparkwright.host.proxy.pool import Pool
from sparkwright.host.service import Service, SmokeRequest
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan, plan_host, taken
from sparkwright.resolve.hub import PinnedFile, ResolvedModel
from sparkwright.resolve.lock import Resolution, from_resolution, render_lock
from sparkwright.resolve.registry import PlatformImage, ResolvedImage
from sparkwright.site.desired import rendered
from sparkwright.text.sizes import GIB
from tests.libyaml import safe_load

ROOT = Path(__file__).resolve().parents[2]
DIGEST = f"sha256:{'ab' * 32}"
COMMIT = "c" * 40
SPARK = {"qwen36": {"recipe": "qwen36-35b-a3b-heretic-dflash"}}
RTX = {"qwen36": {"recipe": "qwen36-35b-a3b-nvfp4-rtx5090"}}


@cache
def catalog() -> Catalog:
    """The shipped catalog."""
    return load_catalog([ROOT / "catalog"])


def alone() -> dict[str, Recipe]:
    """The catalog's recipes that one host serves."""
    return {name: item for name, item in catalog().recipes.items() if item.ranks is None}


#: One architecture of an image of 9 GiB.
PLATFORM = PlatformImage(
    f"sha256:{'1' * 64}",
    {DIGEST: 500, f"sha256:{'1' * 64}": 900},
    {f"sha256:{'2' * 64}": 4000},
    ((f"sha256:{'3' * 64}", 8 * GIB), (f"sha256:{'4' * 64}", GIB)),
)


def origin(key: str) -> str:
    """Source of a key: the same file for all keys."""
    return "group_data/sparks.py"


def plan(services: Mapping[str, Any] = SPARK, host: str = "spark-1", **data: Any) -> HostPlan:
    """A host's plan from settings as group_data gives them."""
    settings = parse_settings(host, {"services": services, **data}, origin)
    result = plan_host(host, settings, catalog(), origin)
    Problems(taken(result, origin)).stop()
    return result


def resolution(host_plan: HostPlan, *, architectures: tuple[str, ...] = ("arm64",)) -> Resolution:
    """Every tag and revision of the plan, resolved without a network."""
    files = {"model.safetensors": PinnedFile(22 * GIB, "d" * 64)}
    return Resolution(
        images={
            image.name: ResolvedImage(DIGEST, dict.fromkeys(architectures, PLATFORM))
            for image in host_plan.references.images
        },
        models={
            model.key: ResolvedModel(model.repository, COMMIT, dt.date(2026, 7, 1), files)
            for model in host_plan.references.models
        },
    )


def locked(*plans: HostPlan) -> str:
    """The lock file of these plans."""
    each = [resolution(item) for item in plans]
    images = {name: image for item in each for name, image in item.images.items()}
    models = {key: model for item in each for key, model in item.models.items()}
    whole = Resolution(images=images, models=models)
    return render_lock(from_resolution([item.references for item in plans], whole, None))


def wanted(host_plan: HostPlan, **keywords: Any) -> Desired:
    """Desired state of a host, in the checks' form."""
    resolved = resolution(host_plan, **keywords)
    return Desired(host_plan, catalog(), resolved, rendered(host_plan, resolved))


def kept_service(
    release: str, name: str = "qwen36", root: str | Path = "/opt/sparkwright", **gate: Any
) -> Service:
    """A service in a host's record; ``gate`` changes its smoke test. A service with a proxy is
    drained at once.
    """
    home = f"{root}/services/{name}"
    asked = SmokeRequest(
        name, f"sparkwright-{name}.service", "127.0.0.1", 8000, f"{home}/secrets.env",
        ("qwen36-fast",), 600, 60, engine="vllm",
    )  # fmt: skip
    return Service(
        name=name, home=home, release=release, recipe="r", tag="new", compose="new",
        unit_text="new unit", image="i", gate=replace(asked, **gate),
        pool=Pool(name, "admin", "master", 0, 0) if gate.get("proxy") else None,
    )  # fmt: skip


def gpus(text: str) -> dict[str, Any]:
    """Report of a host where nvidia-smi prints this text."""
    result: dict[str, Any] = encode(Gpus(True, 0, "", parse(text)))
    return result


def probe(**changes: Any) -> Observation:
    """A fresh Spark without faults; ``changes`` replace whole keys."""
    data = safe_load((ROOT / "tests/fixtures/spark.yaml").read_text())
    data["gpu"] = gpus("NVIDIA GB10, 12.1, 580.95.05, [N/A]\n")
    return decode(Observation, {**data, **changes})
