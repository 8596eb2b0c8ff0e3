"""sparkrun's recipes: version 2, and version 1, the format of eugr/spark-vllm-docker.

Placeholders of a command line are filled in as in the recipe's own project, lines are joined, and
the result is split as a shell would split it. No variable is expanded: arguments that a shell would
run or look up are left out, with a note, and a script is refused.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.engines import ENGINES, engine
from sparkwright.recipes.recipe import Foreign, Options, Remarks, Text, Unfit, texts
from sparkwright.recipes.serve_arguments import PLACEHOLDER
from sparkwright.recipes.yaml_mapping import environment, line, mapping, positive, strings

_ROUNDS = 10
_LONGEST = 64 * 1024
#: Parts of str.format: a brace, a field, or an open brace.
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True)
class Command:
    """Command that a recipe starts.

    Attributes:
        engine: name of the engine that the command starts.
        arguments: all arguments after ``vllm serve`` or another engine's command.
        environment: assignments before the command.
        used: placeholders in the command.
    """

    engine: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    used: frozenset[str]


def filled(text: str, values: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Fill in ``{key}`` repeatedly, as sparkrun does; keys without a value and JSON stay unchanged.
    Also return the used keys.
    """
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        used.add(match[1])
        return str(values[match[1]])

    for _ in range(_ROUNDS):
        before, text = text, _bounded(PLACEHOLDER.sub(value, text))
        if text == before:
            break
    return text, frozenset(used)


def formatted(text: str, values: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Fill in ``{key}`` once, by the rules of ``str.format``: ``{{`` is a brace.

    Raises:
        Unfit: a field reaches into a value, or formats it.
    """
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if (name := match[1]) is None:
            raise Unfit("command", f"the braces are wrong: {match[0]!r}", "str.format reads them")
        if not name.isidentifier():
            raise Unfit("command", f"the field {match[0]}", "a field may only name a key")
        used.add(name)
        return str(values.get(name, match[0]))

    return _bounded(_FIELD.sub(value, text)), frozenset(used)


def command(text: str, used: frozenset[str]) -> Command:
    """The arguments of a command whose placeholders are filled in.

    Raises:
        Unfit: the command is for another engine, or a script.
    """
    split = _split(text)
    environment: dict[str, str] = {}
    while split and _VARIABLE.match(split[0]):
        name, _, value = split.pop(0).partition("=")
        environment[name] = value
    while split and split[0] in ("exec", "env"):
        split.pop(0)
    program = re.sub(r"^(.*/)?(python)?[\d.]*", r"\2", split[0]) if split else ""
    for name, starts in texts()["starts"].items():
        for start in map(str.split, starts if name in ENGINES else ()):
            if [program, *split[1:]][: len(start)] == start:
                return Command(name, tuple(split[len(start) :]), environment, used)
    for word in (program, *split[1:3]):
        if engine := texts()["engines"].get(word):
            raise Unfit("command", f"{engine} ({word})", f"this tool supports only {_titles()}")
    observed = f"the command starts {split[0]!r}" if split and split[0] else "the command is empty"
    raise Unfit("command", observed, f"this tool supports only {_titles()}")


def _titles() -> str:
    return ", ".join(engine(name).title for name in ENGINES)


def _split(text: str) -> list[str]:
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text)
    lines = [
        each for each in joined.splitlines() if each.strip() and not each.lstrip().startswith("#")
    ]
    reader = shlex.shlex("\n".join(lines), posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        split = list(reader)
    except ValueError as error:
        raise Unfit("command", f"the shell syntax is wrong: {error}", "close the quote") from None
    scripts = [word for word in split if word and set(word) <= set("();<>|&")]
    if len(lines) > 1 or scripts:
        observed = f"it has {scripts[0]!r}" if scripts else f"{len(lines)} commands"
        reason = "a recipe must start a single vllm serve, without a shell"
        remedy = "import a copy in which the command is vllm serve alone"
        raise Unfit("command", f"a script: {observed}", reason, remedy)
    return split


def _bounded(text: str) -> str:
    if len(text) > _LONGEST:
        raise Unfit("command", f"text longer than {_LONGEST // 1024} KiB", "its values repeat")
    return text


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether a file has the keys of a recipe of sparkrun."""
    keys = {"command", "defaults", "container", "runtime"}
    return isinstance(data.get("model"), str) and bool(keys & set(data))


def is_version_1(data: Mapping[str, Any]) -> bool:
    """Return whether a file has the keys of a recipe of version 1."""
    return is_one(data) and str(data.get("recipe_version", "")) == "1"


def read(text: Text, data: dict[str, Any], _: Options) -> Iterator[Foreign]:
    """Read the only recipe of a file.

    Raises:
        Unfit: the recipe is for another engine.
    """
    runtime = texts()["sparkrun"]["runtimes"].get(str(data.get("runtime") or "vllm"), "")
    remarks = Remarks(text.source, runtime or "vllm")
    values = {"model": data["model"], **mapping(data, "defaults")}
    if written := data.get("command"):
        started = command(*filled(str(written), values))
        _note_unused(values, started, remarks)
    else:
        started = Command(runtime, _generated(values), {}, frozenset(values))
    yield _foreign(text, data, started, remarks)


def read_version_1(text: Text, data: dict[str, Any], _: Options) -> Iterator[Foreign]:
    """Read the only recipe of a file of version 1.

    Raises:
        Unfit: the recipe has no command, or no registry has its image.
    """
    remarks, values = Remarks(text.source), mapping(data, "defaults")
    if not data.get("command"):
        raise Unfit("command", "the recipe has no command", "a recipe of version 1 needs a command")
    started = command(*formatted(str(data["command"]), values))
    _note_unused(values, started, remarks)
    recipe = _foreign(text, data, started, remarks)
    if image := texts()["sparkrun"]["images"].get(recipe.container):
        remarks.note("published-image", "container", f"{recipe.container} is {image}")
    # The recipe runs on one host as well as on two, unless it requires two.
    alone = data.get("cluster_only") is not True and "min_nodes" not in data
    recipe.container, recipe.may_be_one = image or recipe.container, recipe.may_be_one or alone
    yield recipe


def _foreign(text: Text, data: dict[str, Any], started: Command, remarks: Remarks) -> Foreign:
    runtime = str(data.get("runtime") or "vllm")
    runtimes = texts()["sparkrun"]["runtimes"]
    if runtimes.get(runtime) not in ENGINES:
        imported = ", ".join(name for name in runtimes if runtimes[name] in ENGINES)
        reason = "no engine of this tool serves this runtime"
        raise Unfit("runtime", runtime, reason, f"runtimes that are imported: {imported}")
    remarks.engine = started.engine
    about, executor = mapping(data, "metadata"), mapping(data, "executor_config")
    noted = texts()["sparkrun"]["notes"]
    _note_left_out(data, executor, remarks)
    solo = data.get("solo_only") is True or data.get("max_nodes") == 1
    least = positive(data.get("min_nodes")) or (2 if data.get("cluster_only") is True else 1)
    name, longer = text.names
    return Foreign(
        name=name,
        longer_name=longer,
        title=line(about.get("description") or data.get("description") or data.get("name") or name),
        text=text,
        remarks=remarks,
        model=str(data["model"]),
        revision=str(data["model_revision"]) if data.get("model_revision") else None,
        container=str(data.get("container") or "").strip() or None,
        arguments=started.arguments,
        environment={**environment(mapping(data, "env")), **started.environment},
        gpus=1 if solo else least,
        may_be_one=solo,
        format=str(about["quantization"]) if about.get("quantization") else None,
        shm_gib=_gib(executor.get("shm_size")),
        memlock="memlock" in str(executor.get("ulimit") or ""),
        notes=[f"{key}: {line(about[key])}" for key in noted if about.get(key)],
        mods=tuple(strings(data, "mods")),
    )


def _generated(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The command line with which sparkrun starts a recipe that has no command."""
    names = texts()["sparkrun"]["defaults"]
    made = ["--model", str(values["model"])]
    for key, value in values.items():
        if key == "model" or value is None or value is False:
            continue
        made.append(f"--{names.get(key, key).replace('_', '-')}")
        if value is not True:
            made += map(str, value if isinstance(value, list) else [value])
    return tuple(made)


def _note_unused(values: Mapping[str, Any], started: Command, remarks: Remarks) -> None:
    """Note the defaults that the command does not use."""
    for key in values:
        if key in {*started.used, "model", "port", "host"}:
            continue
        shown = key if key == "api_key" else f"{key}: {line(values[key])}"
        remarks.note("default-unused", f"defaults.{key}", shown)


def _note_left_out(data: dict[str, Any], executor: dict[str, Any], remarks: Remarks) -> None:
    tables = texts()["sparkrun"]
    for key, value in data.items():
        if key not in tables["known"] and value not in (None, [], {}, False, ""):
            shown = line(", ".join(map(line, value)) if isinstance(value, list) else line(value))
            reason = tables["left_out"].get(key, "the key is not known")
            remarks.left_out(key, f"{key}: {shown}", reason)
    for key, value in executor.items():
        if key != "shm_size" and (key != "ulimit" or "memlock" not in str(value)):
            reason = tables["executor"].get(key, "this tool configures containers itself")
            remarks.left_out(f"executor_config.{key}", f"{key}: {line(value)}", reason)


def _gib(size: Any) -> float | None:
    """Convert a size such as ``10.24gb`` to GiB, like Docker; None if Docker refuses the text."""
    amount = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*([kmg]?)b?", str(size or "").lower())
    if amount is None or not float(amount[1]):
        return None
    return float(amount[1]) / {"g": 1, "m": 1024, "k": 1024**2, "": 1024**3}[amount[2]]
