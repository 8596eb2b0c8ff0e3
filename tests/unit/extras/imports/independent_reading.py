"""A second reading of foreign recipes, which shares no code with the importer, and a comparison.

sparkrun's recipes are read with ``str.format``, ``str.replace`` and ``shlex``. For vLLM's recipes
the project's own page builds the command: ``src/lib/command-synthesis.js``, run with node.
"""

import json
import re
import shlex
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from sparkwright.extras.imports.entries import Imported
from sparkwright.extras.imports.formats import import_texts
from sparkwright.extras.imports.sources import of_path
from sparkwright.recipes.recipe import Options
from tests.unit.builders import catalog

_SHORT = {
    "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size",
    "ep": "enable_expert_parallel", "O": "optimization_level", "cc": "compilation_config",
}  # fmt: skip
_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size")
#: vLLM's page adds these arguments for each rank of several hosts.
_RANKS = ("nnodes", "node_rank", "master_addr")
_OPTION = re.compile(r"--?[A-Za-z]")
_PAGE = """
import { readFileSync } from "fs";
import { resolveCommand } from "./synthesis.mjs";
const { recipes, box, strategies, taxonomy } = JSON.parse(readFileSync(0, "utf8"));
const commands = {};
for (const [file, recipe] of Object.entries(recipes)) {
  for (const [name, variant] of Object.entries(recipe.variants)) {
    const chosen = variant?.default_modes || {};
    const on = Object.keys(recipe.features || {})
      .filter((feature) => feature in chosen || !(recipe.opt_in_features || []).includes(feature));
    const spread = ["supported", "verified"]
      .includes(recipe.strategy_hardware?.multi_node_tp?.[box]);
    const made = resolveCommand(recipe, name, spread ? "multi_node_tp" : "single_node_tp", box, on,
                                strategies, taxonomy, [], spread ? 2 : 1);
    commands[`${file} (${name})`] = { argv: made.argv || made.headArgv, env: made.env };
  }
}
console.log(JSON.stringify(commands));
"""


def _plain(path: Path) -> Any:
    with suppress(yaml.YAMLError):
        return json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    return None


def commands_of_vllms_page(registry: Path, box: str) -> dict[str, dict[str, Any]]:
    """``FILE (VARIANT)`` -> argv and env, as the registry's own JavaScript makes them."""
    pages = {str(path): _plain(path) for path in registry.rglob("*.yaml")}
    job = {
        "recipes": {file: page for file, page in pages.items()
                    if isinstance(page, dict) and isinstance(page.get("model"), dict)
                    and isinstance(page.get("variants"), dict)},
        "box": box,
        "strategies": {path.stem: _plain(path) for path in registry.glob("strategies/*.yaml")},
        "taxonomy": _plain(registry / "taxonomy.yaml"),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source = (registry / "src/lib/command-synthesis.js").read_text()
        Path(folder, "synthesis.mjs").write_text(source)
        Path(folder, "page.mjs").write_text(_PAGE)
        done = subprocess.run(
            ["node", "page.mjs"], cwd=folder, input=json.dumps(job), text=True, check=True,
            stdout=subprocess.PIPE,
        )  # fmt: skip
    commands: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return commands


def command_of_sparkrun(data: Mapping[str, Any]) -> dict[str, Any]:
    """argv and env of a recipe of version 1 or 2."""
    defaults = data.get("defaults") or {}
    if not (text := data.get("command")):
        argv = ["vllm", "serve", data["model"]]
        for key, value in defaults.items():
            option = "--" + f"{key}{'_size' * key.endswith('_parallel')}".replace("_", "-")
            argv += [] if value is False else [option, *[str(value)] * (value is not True)]
    elif str(data.get("recipe_version")) == "1":
        argv = _split(text.format(**defaults))
    else:
        before = ""
        while text != before:
            before = text
            for key, value in {"model": data["model"], **defaults}.items():
                text = text.replace(f"{{{key}}}", str(value))
        argv = _split(text)
    assigned = [
        argv.pop(0) for word in list(argv) if re.match("[A-Z_]+=", word) and word == argv[0]
    ]
    env = {**(data.get("env") or {}), **dict(item.split("=", 1) for item in assigned)}
    return {"argv": argv, "env": env}


def _split(text: str) -> list[str]:
    lines = re.sub(r"\\ *\n", " ", text).splitlines()
    return shlex.split(" ".join(line for line in lines if not line.lstrip().startswith("#")))


def _value(text: str) -> Any:
    for written in (text, text.replace("{{", "{").replace("}}", "}")):
        with suppress(ValueError):
            return json.loads(written)
    return text


def flags(argv: list[str]) -> dict[str, Any]:
    """Arguments of ``vllm serve``; ``model`` is the positional argument. A pair in one word counts
    as two words."""
    left = [part for word in argv[2:] for part in
            (word.split(" ", 1) if re.match(r"--[\w-]+ ", word) else [word])]  # fmt: skip
    read: dict[str, Any] = {}
    while left:
        option, equals, value = (word := left.pop(0)).partition("=")
        if not _OPTION.match(word):
            read["model"] = word
            continue
        name, *path = option.lstrip("-").split(".")
        if not option.startswith("--"):
            name = _SHORT.get(name, name)
        path = [part.replace("-", "_") for part in (name, *path)]
        values = [value] if equals else []
        while not equals and left and not _OPTION.match(left[0]):
            values.append(left.pop(0))
        several = [_value(item) for item in values]
        meant: Any = True if not values else several[0] if len(several) == 1 else several
        inner = read
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        before = inner.get(path[-1])
        if isinstance(before, dict) and isinstance(meant, dict):
            meant = {**before, **meant}
        inner[path[-1]] = meant
    return read


def differences(
    imported: Imported, command: Mapping[str, Any], repositories: Mapping[str, str]
) -> list[str]:
    """Arguments and variables that the import changes or drops without naming them.

    Args:
        repositories: repositories of every model of the catalog and the import, by name.
    """
    made = imported.entries["recipe", imported.name]
    have = {key: _value(value) if isinstance(value, str) else value
            for key, value in made["arguments"].items()}  # fmt: skip
    have |= {f"{key}_parallel_size": size for key, size in made.get("ranks", {}).items()}
    mounts = {part["mount"]: repositories[part["model"]]
              for part in (made["body"], made.get("drafter")) if part}  # fmt: skip
    have["model"], have["served_model_name"] = mounts[made["body"]["mount"]], made["served_names"]
    speculation = have.get("speculative_config")
    if isinstance(speculation, dict) and "model" in speculation:
        speculation["model"] = mounts[speculation["model"]]
    meant = flags(command["argv"])
    names = meant.get("served_model_name", meant.get("model"))
    meant["served_model_name"] = names if isinstance(names, list) else [str(names)]
    named = {finding.subject.key for finding in imported.findings}

    def is_named(name: str, kind: str = "arguments") -> bool:
        options = {f"--{no}{name}".replace("_", "-") for no in ("", "no_")} | {f"--{name}"}
        options |= {f"-{short}" for short, name_ in _SHORT.items() if name_ == name}
        return any(key == f"{kind}.{name}" or key.startswith(f"{kind}.{name}.")
                   or key.removeprefix("command ").split(".")[0] in options
                   for key in named if key)  # fmt: skip

    meant = {name[3:] if name.startswith("no_") else name: value and not name.startswith("no_")
             if value is True else value for name, value in meant.items()}  # fmt: skip
    differ = []
    for name in {**meant, **have}:
        value, kept = meant.get(name), have.get(name)
        if name == "speculative_config" and isinstance(value, dict) and made.get("drafter"):
            value = {key: part for key, part in value.items() if key != "revision"}
        same = str(kept) == str(value) or str(kept) == f"/vllm-workspace/{value}"
        same |= name in _PARALLEL and {str(value), str(kept)} == {"1", "None"}
        same |= (name, value) in (("port", 8000), ("host", "0.0.0.0"))
        same |= (name, kept) == ("runner", "pooling")  # the page's `tasks` imply pooling
        if not same and not is_named(name):
            differ.append(f"{name}: {kept!r}, and the recipe means {value!r}")
    variables = {name: "" if value is None else str(value)
                 for name, value in command["env"].items()}  # fmt: skip
    for name in {**variables, **made["environment"]}:
        if variables.get(name) != made["environment"].get(name) and not is_named(name, "env"):
            differ.append(f"env.{name}: {made['environment'].get(name)!r}")
    return differ


def compared(
    registry: Path, box: str = "dgx_spark_gb10", **options: Any
) -> tuple[Counter[str], list[str]]:
    """Counts of a folder's recipes imported whole or in part, or refused, and their differences."""
    counted: Counter[str] = Counter()
    differ: list[str] = []
    has_page = (registry / "src/lib/command-synthesis.js").is_file()
    pages = commands_of_vllms_page(registry, box) if has_page else {}
    results = list(import_texts(of_path(registry), catalog(), Options(**options)))
    repositories = {name: model.repository for name, model in catalog().models.items()}
    for imported in results:
        repositories |= {name: entry["repository"] for (kind, name), entry
                         in imported.entries.items() if kind == "model"}  # fmt: skip
    for imported in results:
        counted["whole" if imported.whole else "in part" if imported.entries else "refused"] += 1
        if not imported.entries:
            assert all(finding.observed and finding.reason for finding in imported.findings)
            continue
        command = pages.get(imported.source)
        command = command or command_of_sparkrun(yaml.safe_load(Path(imported.source).read_text()))
        for name in differences(imported, command, repositories):
            if not (pages and name.partition(":")[0] in (*_PARALLEL, *_RANKS)):
                differ.append(f"{imported.source}: {name}")
    return counted, differ
