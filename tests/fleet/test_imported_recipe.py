"""Another project's recipe: imported, deployed, used, unchanged by a second run, and removed."""

import json
from typing import Any

import pytest

from tests.fleet.site import ROOT, Site, bare, ssh

HOST = "spark-2"
INVENTORY = "inventory/imported.py"
RECIPE = """\
recipe_version: "2"
name: ../../etc/open-tiny
model: lab/open-tiny
runtime: vllm
container: vllm/vllm-openai:v0.32.0
max_nodes: 1
mods: [mods/never-run]
pre_exec: ["touch /tmp/imported-pre-exec"]
post_commands: ["touch /tmp/imported-post-commands"]
metadata: {description: A tiny model}
defaults: {port: 8000, host: 0.0.0.0, tensor_parallel: 1, gpu_memory_utilization: 0.5,
  max_model_len: 2048}
env: {PYTHONPATH: /models/open-tiny, EVIL: "$(touch /tmp/imported-env)"}
command: |
  vllm serve {model} --host {host} --port {port} \\
    -tp {tensor_parallel} --gpu-memory-utilization {gpu_memory_utilization} \\
    --max-model-len {max_model_len} --max-num-seqs 4 --served-model-name tiny-imported
"""
IMPORT = (
    *("import", "open-tiny.yaml", "--directory", "mine", "--replace"),
    *("--engine-version", "0.24.0"),
)  # fmt: skip
SERVICES = {"qwen36": {"recipe": "open-tiny"}}


@pytest.fixture
def imported(site: Site) -> Site:
    """A bare host, and a site whose own catalog has the recipe."""
    site.power_on()
    site.repair()
    bare(HOST)
    (site.folder / "open-tiny.yaml").write_text(RECIPE)
    (site.folder / "mine").mkdir(exist_ok=True)
    message = site.sparkwright(*IMPORT, code=1)  # 1: the import leaves out the mod
    for left_out in ("mod never-run", "pre_exec", "post_commands", "EVIL", "PYTHONPATH"):
        assert left_out in message
    text = (ROOT / "inventory/virtual.py").read_text()
    text += "\n_all = dict(sparks)\nsparks = []\nrtx50 = []\n"
    text += f"imported = [({HOST!r}, {{**_all[{HOST!r}], 'services': {SERVICES!r},\n"
    text += "    'catalog_directories': ('lab/catalog', 'mine')})]\n"
    (site.folder / INVENTORY).write_text(text)
    return site


def _ask(site: Site, route: str, **body: Any) -> Any:
    """The answer to a client's request on the host."""
    headers = f"-H 'Authorization: Bearer {site.key}' -H 'Content-Type: application/json'"
    data = json.dumps({"model": "tiny-imported", **body})
    return json.loads(
        ssh(HOST, f"curl -fsS -m 20 {headers} -d '{data}' http://127.0.0.1:8000/{route}")
    )


def test_an_imported_recipe_serves_stays_unchanged_and_is_removed(imported: Site) -> None:
    assert (imported.folder / "mine/recipes/open-tiny.original").read_text() == RECIPE

    first = imported.deploy(inventory=INVENTORY)
    assert first.changed == {HOST}
    answer = _ask(imported, "v1/completions", prompt="1 2 3", max_tokens=4)
    assert answer["usage"]["completion_tokens"] == 4
    ssh(HOST, 'test -z "$(ls /tmp/imported-* 2>/dev/null)"')
    ssh(HOST, "docker exec sparkwright-qwen36 sh -c 'test -z \"$EVIL$PYTHONPATH\"'")

    assert imported.deploy(inventory=INVENTORY).changed == set()

    imported.sparkwright("remove", INVENTORY, "--weights", "--yes")
    assert ssh(HOST, "docker ps -aq --filter name=sparkwright-qwen36") == ""
    assert ssh(HOST, "sudo find /opt/models -name model.safetensors | wc -l") == "0"


def test_an_imported_embedding_model_returns_vectors(imported: Site) -> None:
    text = RECIPE.replace("serve {model}", "serve {model} --runner pooling")
    (imported.folder / "open-tiny.yaml").write_text(text)
    imported.sparkwright(*IMPORT, code=1)
    assert imported.deploy(inventory=INVENTORY).changed == {HOST}
    answer = _ask(imported, "rerank", query="a b", documents=["c", "a b"])
    assert answer["results"][0]["index"] == 1
    assert "vectors of" in imported.sparkwright("smoke", INVENTORY, "--limit", HOST)
