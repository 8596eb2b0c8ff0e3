"""Make a table of llama-server's arguments from the help that the real program prints.

    docker run --rm --entrypoint /app/llama-server IMAGE --help > help.txt
    python .ci/llamacpp_table.py b9842 < help.txt > sparkwright/engines/llamacpp/tables/b9842.json

The help lists every argument that the program's parser (common/arg.cpp) accepts, with its names,
the kind of its value and its default.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

#: Placeholders of whole numbers, which the parser reads by stoi; stof reads other numbers.
_WHOLE = re.compile(r"N|INDEX|SECONDS|PORT|SEED")
_DEFAULT = re.compile(r"\bdefault: ([^,()\s]+)")
_TEXT = re.compile(r"\bdefault: '?(\w+)'?\)")
#: Arguments whose placeholder is N although their values are not whole numbers.
_FLOATS = re.compile(
    r"yarn_|rope_|temp|top_p|min_p|top_n?_?sigma|xtc_|typical|penalty|dry_(multiplier|base)|"
    r"adaptive_|dynatemp|mirostat_|p_split|p_min|synth|video_fps|slot_prompt"
)
_INTEGERS = re.compile(r"dry_penalty_last_n|repeat_last_n")


def entries(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Names, placeholder of the value, and description of each argument."""
    current: list[str] = []
    for line in [*text.splitlines(), "-end"]:
        if line.startswith("-") and not line.startswith("-----"):
            if current:
                yield _entry(current)
            current = [line]
        elif current and line.startswith(" "):
            current.append(line)


def _entry(lines: list[str]) -> tuple[list[str], str, str]:
    head, _, rest = lines[0].partition("  " if "  " in lines[0][7:] else "\0")
    if lines[0][:7].rstrip().endswith(",") and len(lines[0][:7].rstrip()) < 7:
        head = lines[0][:7] + lines[0][7:].partition("  ")[0]
        rest = lines[0][7:].partition("  ")[2]
    names = re.findall(r"(?:^|, +|,)(--?[A-Za-z][A-Za-z0-9.-]*)", head)
    last = head.rfind(names[-1]) + len(names[-1])
    return names, head[last:].strip(), " ".join([rest, *lines[1:]])


def table(version: str, text: str) -> dict[str, Any]:
    """A table, as plain data."""
    arguments: dict[str, list[Any]] = {}
    aliases: dict[str, str] = {}
    for names, value, description in entries(text):
        if "argument has been removed" in description:
            continue
        long = [name[2:].replace("-", "_") for name in names if name.startswith("--")]
        positive = [name for name in long if not name.startswith("no_")] or long
        # Documents use the longest name: --n-gpu-layers, --ctx-size.
        name = max(positive, key=lambda each: (not each.startswith("spec_"), len(each)))
        name = next((each for each in positive if each in _KNOWN), name)
        negated = f"no_{name}" in long or (len(long) > len(positive) > 0)
        for other in (*positive, *(each.lstrip("-") for each in names if each[:2] != "--")):
            if other.replace("-", "_") != name and not other.startswith("no-"):
                aliases[other.replace("-", "_")] = name
        kind, choices = _kind(name, value, description)
        default = (_TEXT if kind == "any" else _DEFAULT).search(description)
        arguments[name] = [kind, choices, negated and kind == "flag", _default(kind, default)]
    rest = {"version": version, "aliases": dict(sorted(aliases.items()))}
    return {"arguments": dict(sorted(arguments.items())), **rest}


#: Names that documents use for arguments with several names.
_KNOWN = (
    "n_gpu_layers", "n_gpu_layers_draft", "embeddings", "reranking", "model_draft", "n_predict",
    "temp", "device_draft", "hf_repo_draft", "cache_type_k_draft", "cache_type_v_draft",
    "ctx_checkpoints", "ui", "ui_config", "ui_config_file", "ui_mcp_proxy",
    "typical", "verbose", "help", "verbosity",
)  # fmt: skip


def _kind(name: str, value: str, description: str) -> tuple[str, list[str]]:
    if not value:
        return "flag", []
    if listed := re.fullmatch(r"[\[{<]([a-z0-9_+-]+(?:[|,][a-z0-9_+-]+)+)[\]}>]", value):
        return "any", re.split(r"[|,]", listed[1])
    allowed = re.search(r"allowed values: ((?:\w+,\s+)*\w+)", description)
    if allowed:
        return "any", re.split(r",\s+", allowed[1])
    if _WHOLE.fullmatch(value) and "'auto'" not in description:
        floats = _FLOATS.search(name) and not _INTEGERS.search(name)
        return "float" if floats and name != "yarn_orig_ctx" else "int", []
    return "any", []


def _default(kind: str, match: re.Match[str] | None) -> Any:
    """A default in a recipe's form; None for a default that is not a plain value."""
    if match is None:
        return None
    text = match[1].strip("'\"")
    if kind == "flag":
        return {"enabled": True, "true": True, "disabled": False, "false": False}.get(text)
    if kind in ("int", "float"):
        return (int if kind == "int" else float)(text) if re.fullmatch(r"-?[\d.]+", text) else None
    return None if text in ("unused", "none", "disabled") else text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python .ci/llamacpp_table.py VERSION < HELP")
    made = table(sys.argv[1], sys.stdin.read())
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in made["arguments"].items())
    print(f'{{\n "arguments": {{\n{lines}\n }},')
    print(
        f' "version": {json.dumps(made["version"])},\n "aliases": {json.dumps(made["aliases"])}\n}}'
    )
