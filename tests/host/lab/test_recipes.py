"""Recipes as planned and rendered, started by the fakes with the lab's weights: stock vLLM for
RTX 50, a model by its repository's name, SGLang and llama.cpp."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lab.hub.miniature import build
from lab.hub.qwen3_fp8 import CONTEXT, MINIATURE, REPOSITORY
from lab.hub.serving import running
from lab.hub.store import Store
from lab.serving.build import PACKAGES, fake_files
from lab.serving.fake_vllm.model import read_weights
from lab.serving.tags import STOCK, TAGS
from sparkwright.checks.smoke.deep import deep_request
from sparkwright.engines import client_routes, engine, log_patterns
from sparkwright.host.lib.http import Server
from sparkwright.host.smoke import check, deep
from sparkwright.host.smoke.client import DeepRequest
from sparkwright.plan.service import container_command, render_service
from tests.engine.captures import LLAMA_SERVER, shape
from tests.host.lab.fake_server import KEY, Folders, settings_of
from tests.unit.builders import catalog, plan, resolution, wanted
from tests.unit.engines.derivation.repositories import chat, planned

STOCK_VLLM = [
    recipe.name
    for recipe in catalog().recipes.values()
    if int(recipe.system.partition(".")[0]) > 9
    and recipe.ranks is None
    and catalog().images[recipe.image].engine == "vllm"
]
VERSIONS = {name: tag.version for tag in TAGS if tag.repository == STOCK for name in tag.names}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("stock"))


@pytest.mark.parametrize("recipe", STOCK_VLLM)
def test_a_stock_recipe_starts_with_what_it_renders(recipe: str, folders: Folders) -> None:
    entry = catalog().recipes[recipe]
    body = catalog().models[entry.body.model]
    host = plan({"s": {"recipe": recipe}}, "rtx-1")
    (service,) = host.services
    text = render_service(host, service, resolution(host, architectures=("amd64",))).compose
    rendered = yaml.safe_load(text)["services"]["engine"]
    arguments = [str(folders(body.repository)) if word == entry.body.mount else word
             for word in rendered["command"][1:]]  # fmt: skip

    settings = settings_of(arguments, VERSIONS[service.image.tag], "stock")

    assert settings.model.quant_method == ("modelopt" if body.format == "modelopt" else None)
    asked = entry.arguments.get("speculative_config")
    assert (settings.speculation is None) == (asked is None)
    if settings.speculation is not None and isinstance(asked, dict):
        assert settings.speculation.method == asked["method"]
        assert settings.speculation.tokens == asked["num_speculative_tokens"]
    weights = Path(settings.model.path).glob("*.safetensors")
    read = read_weights(settings.model, lambda _done, _count: None)
    assert read == sum(path.stat().st_size for path in weights)


def test_the_lab_has_every_tag_of_stock_vllm() -> None:
    assert set(catalog().images["vllm-openai"].tags) <= set(VERSIONS)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("hub")
    build(MINIATURE, Store(data), 1.0, "test")
    with running(data) as url:
        yield url


def test_what_the_hub_says_is_enough_to_start_it(hub: str, tmp_path: Path) -> None:
    fleet = planned(hub_endpoint=hub)
    service = chat(fleet)
    (host,) = fleet.hosts.values()
    (model,) = host.resolved_models.values()
    assert model.facts is not None
    assert (model.facts.quantization, model.facts.context) == ("fp8", CONTEXT)
    assert model.facts.license == "apache-2.0"
    assert host.catalog.models[service.body.name].capabilities == ("tools", "thinking")

    text = render_service(host.plan, service, resolution(host.plan)).compose
    arguments = yaml.safe_load(text)["services"]["engine"]["command"][1:]
    folder = str(Folders(tmp_path)(REPOSITORY))
    texts = [folder if word == service.body.mount else word for word in arguments]
    settings = settings_of(texts, "0.32.0", "stock")
    assert settings.model.quant_method == "fp8"
    assert settings.reasoning_parser == "qwen3"


BOOT = log_patterns("boot")
RECIPES = [
    recipe.name
    for recipe in catalog().recipes.values()
    if recipe.ranks is None and catalog().images[recipe.image].engine != "vllm"
]
#: Engine -> phases of its boot by its log, and routes that the proxy shuts.
LOGGED = {
    "sglang": ["weights into memory", "compiling", "capturing graphs", "first answers"],
    "llamacpp": ["weights into memory", "first answers"],
}
SHUT = {
    "sglang": ["/flush_cache", "/update_weights_from_disk", "/abort_request", "/server_info"],
    "llamacpp": ["/props", "/slots"],
}


@pytest.fixture(scope="module", params=RECIPES)
def request_(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeepRequest]:
    """The deep smoke test's request to the fake in the image's tree of files."""
    needs = catalog().recipes[request.param].needs
    host = plan({"s": {"recipe": request.param}}, "spark-1" if needs.vram_gib is None else "rtx-1")
    ((service, rendered),) = wanted(host).planned_services
    own, tree = engine(service.engine), tmp_path_factory.mktemp("image")
    assert service.image.tag in [name for tag in TAGS for name in tag.names]
    for name, (content, _) in fake_files().items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    model, socket = str(Folders(tree / "hub")(service.body.repository)), str(tree / "http.sock")
    words = [
        word.replace("/run/engine/http.sock", socket).replace(service.body.mount, model)
        for word in container_command(service).arguments
    ]
    program = [] if service.engine == "sglang" else [str(tree / "app/llama-server")]
    environment = {
        "PYTHONPATH": f"{tree / PACKAGES}:{tree / 'opt/fake-vllm'}",
        "FAKE_VLLM_NO_GPU_CHECK": "1", "FAKE_VLLM_BOOT_SECONDS": "0.05",
        "FAKE_VLLM_VERSION": service.version or "", own.key_variable: KEY,
    }  # fmt: skip
    (tree / "secrets.env").write_text(f"{own.key_variable}={KEY}\n")
    with (tree / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *program, *words],
            env={**os.environ, **environment}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 20
        while not Path(socket).exists() and time.monotonic() < deadline:
            assert process.poll() is None, (tree / "log").read_text()
            time.sleep(0.05)
        yield replace(
            deep_request(service, rendered.gate, catalog()), address=socket, port=0, proxy=None,
            secrets=str(tree / "secrets.env"), boot_seconds=5, first_answer_seconds=20,
            warm_ups=1, unit="sparkwright-none.service",
        )  # fmt: skip
    finally:
        process.terminate()
        process.wait(10)


def test_the_smoke_tests_pass(request_: DeepRequest) -> None:
    checks = {item.name: item for item in check.run(request_).checks}
    drafts = ["speculation"] if request_.speculates else []
    assert [*checks] == ["health", "models", "key", "generation", "warm-up 1", *drafts]
    assert [item for item in checks.values() if not item.ok] == []
    if drafts:
        assert "drafts were verified" in checks["speculation"].detail
    answer = deep.run(request_)
    assert [item for item in answer.checks if item.verdict == "failed"] == []


def test_every_metric_that_the_engine_names_is_there(request_: DeepRequest) -> None:
    text = Server(request_.address, 0, KEY).ask("GET", "/metrics").text
    listed = {line.split("{")[0].split(" ")[0] for line in text.splitlines()}
    assert set(engine(request_.engine).metrics.values()) <= listed


@pytest.mark.parametrize("request_", RECIPES[1:2], indirect=True)
def test_llama_servers_own_answers_look_as_captured(request_: DeepRequest) -> None:
    captured = json.loads((LLAMA_SERVER / "answers.json").read_text())
    for item in (captured[name] for name in ("health", "no_key")):
        server = Server(request_.address, 0, KEY if item["key"] else None)
        answer = server.ask(item["method"], item["path"], item.get("request"))
        body = shape(json.loads(answer.text))
        assert (answer.status, body) == (item["status"], shape(item["body"]))


def test_the_proxy_shuts_routes_of_the_server_itself(request_: DeepRequest) -> None:
    server = Server(request_.address, 0, KEY)
    open_paths = {path for _, path in client_routes(request_.engine)}
    for path in SHUT[request_.engine]:
        answers = {server.ask(method, path, {}).status for method in ("GET", "POST")}
        assert (200 in answers, path in open_paths) == (True, False), path


def test_the_log_tells_its_phases_and_no_key(request_: DeepRequest) -> None:
    text = (Path(request_.address).parent / "log").read_text()
    assert KEY not in text
    phases = dict.fromkeys(
        phase for line in text.splitlines() for own, phase in BOOT.items() if re.search(own, line)
    )
    assert list(phases) == LOGGED[request_.engine]
