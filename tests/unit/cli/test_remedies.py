"""Every remedy of a rule, followed: the finding is gone, and no other one takes its place."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog
from tests.unit.cli.test_incompatibilities import ROWS, checked, host_of

BREAKS = safe_load((ROOT / "tests/unit/checks/configuration/mistakes.yaml").read_text())
#: Rules on a name: the key itself is what the guess takes the place of.
NAMES = {"unknown-argument", "speculative-key", "misspelt-variable"}
_KEY = r"`?([A-Za-z_][\w.\-]*)`?"
#: Remedies that are work, or a choice, of a person's.
PEOPLE = {"input", "remote-code", "secret-in-environment", "model-works", "image-architecture",
          "drafter-unused", "argument-choice", "kv-offload", "absent-file"}  # fmt: skip


def changes(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Alternatives of a remedy: dotted key -> value, None for what is left out."""
    remedy = item["remedy"]
    key = (item["subject"]["key"] or "").removeprefix("services.s.")
    for alternative in re.sub(r" \([^()]*\)", "", remedy).split("; or "):
        result: dict[str, Any] = {}
        for clause in re.split(r", (?=leave |[A-Za-z_.\-]+: )", alternative):
            if left := re.fullmatch(rf"leave {_KEY} out", clause):
                result[key if left[1] == "it" else left[1]] = None
            elif guess := re.fullmatch(r"did you mean '(.*)'\?", clause):
                result[key] = None if item["id"] in NAMES else guess[1]
            elif (written := re.fullmatch(rf"{_KEY}: ([^,]+)", clause)) and "..." not in clause:
                result[written[1]] = safe_load(written[2])
            else:
                raise AssertionError(f"nobody can follow {clause!r} of {remedy!r}")
        yield result


def applied(host: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A host's settings with the changes of a remedy."""
    host = deepcopy(host)
    service = host["services"]["s"]
    for name, value in change.items():
        name = re.sub(r"^(arguments|environment)\.", "", name)
        first, _, rest = name.partition(".")
        if first in ("recipe", "image_tag", "bind", "proxy", "served_names", "smoke",
                     "media_domains"):  # fmt: skip
            (service.setdefault("smoke", {}) if rest else service)[rest or first] = value
            for key in ("image_tag",) if first == "recipe" else (first,) if value is None else ():
                service.pop(key, None)
        elif first.isupper():
            service.setdefault("environment", {})[name] = value
        else:
            variables = catalog().images[catalog().recipes[service["recipe"]].image].variables
            variable = variables and (
                variables.arguments.get(first)
                or (variables.num_speculative_tokens if rest == "num_speculative_tokens" else None)
            )
            if variable in service.get("environment", {}):
                service["environment"][variable] = str(value)
                continue
            arguments = service["arguments"] = {
                key.replace("-", "_"): item for key, item in service.get("arguments", {}).items()
            }
            recipe = catalog().recipes[service["recipe"]].arguments
            if rest:
                whole = arguments.get(first, recipe.get(first)) or {}
                whole = safe_load(whole) if isinstance(whole, str) else whole
                parts = {
                    key: item for key, item in {**whole, rest: value}.items() if item is not None
                }
                arguments[first] = parts or None
            elif name in recipe or value is not None:
                arguments[name] = value
            else:
                arguments.pop(name, None)
    return host


def test_a_remedy_leads_to_no_other_refusal(tmp_path: Path) -> None:
    rows = [host_of(row) for row in ROWS]
    rows += [{"services": {"s": {"recipe": b["recipe"], **b["settings"]}}} for b in BREAKS.values()]
    before = checked(tmp_path, {f"row-{number}": row for number, row in enumerate(rows)})
    followed: dict[str, dict[str, Any]] = {}
    remedies: list[tuple[str, list[dict[str, Any]]]] = []
    for row, findings in zip(rows, before.values(), strict=True):
        whole = row
        for item in findings:
            if item["id"] not in PEOPLE:
                each = list(changes(item))
                for change in each:
                    followed[f"one-{len(followed)}"] = applied(row, change)
                    remedies.append((item["id"], findings))
                whole = applied(whole, each[0])
        followed[f"all-{len(followed)}"] = whole
        remedies.append(("", findings))
    after = checked(tmp_path, followed)
    problems = []
    for (name, findings), (id_, earlier) in zip(after.items(), remedies, strict=True):
        ids, old = ({item["id"] for item in each} for each in (findings, earlier))
        if id_ in ids or ids - old or (not id_ and ids - PEOPLE):
            problems.append(f"{id_ or 'all'}: {sorted(old)} -> {sorted(ids)}: {followed[name]}")
    assert not problems, "\n".join(problems)
