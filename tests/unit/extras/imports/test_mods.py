"""Mods of recipes as files and patches; each script is also run by bash, with recorded programs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkwright.extras.imports.mods import FILES, Mod
from sparkwright.recipes.recipe import Unfit
from tests.tables import Tables

cases = Tables(__file__)
SHAPES: dict[str, dict[str, Any]] = cases.data["shapes"]
READ = [name for name, shape in SHAPES.items() if "becomes" in shape]
#: A program that appends its name, its folder, its input and its arguments to the file RECORD.
RECORDER = """#!/usr/bin/python3
import json, os, sys
stdin = os.path.basename(os.readlink("/proc/self/fd/0"))
with open(os.environ["RECORD"], "a") as record:
    call = [os.path.basename(sys.argv[0]), os.getcwd(), stdin, *sys.argv[1:]]
    print(json.dumps(call), file=record)
"""


def _steps(script: str, files: dict[str, str]) -> list[list[str]]:
    """Files and patches of a mod, as the table writes them."""
    mod = Mod("fix", {**files, "run.sh": script})
    mod.read(remote_code=True)
    steps = []
    for file in mod.files:
        hub = file.repository and [file.repository, str(file.revision), str(file.file)]
        steps.append(["hub", file.at, *hub] if hub else ["file", file.at, _name(file.source)])
    for patch in mod.patches:
        steps += [["image", file.at, _name(file.source)] for file in patch.files]
        if patch.patch:
            marks = [mark for mark in ("optional", "reverse") if getattr(patch, mark)]
            steps.append(["patch", str(patch.into), _name(patch.patch), *marks])
    return steps


def _name(source: Any) -> str:
    return str(source).rpartition("/")[2]


@pytest.mark.parametrize("name", SHAPES)
def test_a_mod_is_read_as_data_or_refused_by_the_line(name: str) -> None:
    shape = SHAPES[name]
    if name in READ:
        assert _steps(shape["script"], shape["files"]) == shape["becomes"]
        return
    with pytest.raises(Unfit) as refused:
        _steps(shape["script"], shape["files"])
    line, reason = shape["refused"]
    assert refused.value.observed == f"mod fix: {line}"
    assert reason in refused.value.reason


def test_46_of_64_public_recipes_with_mods_are_of_shapes_that_are_read() -> None:
    rows = cases.data["recipes"]
    whole = [number for names, number in rows if {*names} <= {*READ}]
    assert (sum(whole), sum(number for _, number in rows)) == (46, 64)


@pytest.mark.parametrize("name", READ)
def test_bash_does_what_was_read(name: str, tmp_path: Path) -> None:
    """In the mod's folder; cp, patch and wget only record how they are called."""
    shape, programs, work = SHAPES[name], tmp_path / "bin", tmp_path / "work"
    for folder in (programs, work, tmp_path / "mod"):
        folder.mkdir()
    for program in ("cp", "patch", "wget"):
        (programs / program).write_text(RECORDER)
        (programs / program).chmod(0o755)
    for file, text in {**shape["files"], "run.sh": shape["script"]}.items():
        (tmp_path / "mod" / file).write_text(text)
    record = tmp_path / "record"
    environment = {"PATH": str(programs), "WORKSPACE_DIR": str(work), "RECORD": str(record)}
    subprocess.run(["/bin/bash", "run.sh"], cwd=tmp_path / "mod", env=environment, check=True)
    steps = []
    for call in record.read_text().replace(f"{work}", FILES[:-1]).splitlines():
        program, folder, stdin, *words = json.loads(call)
        if program == "cp":
            *names, target = words
            kind = "file" if target.startswith(FILES) else "image"
            steps += [[kind, target + each * target.endswith("/"), each] for each in names]
        elif program == "patch":
            marks = ["optional"] * (f"< {stdin} ||" in shape["script"])
            marks += ["reverse"] * ("-R" in words)
            steps.append(["patch", words[words.index("-d") + 1], stdin, *marks])
        else:
            *repository, _, revision, file = words[0].split("/")[3:]
            steps.append(["hub", f"{folder}/{file}", "/".join(repository), revision, file])
    assert steps == shape["becomes"]


@cases("line")
def test_a_line_that_is_not_fully_understood_refuses_the_mod(line: str) -> None:
    files = {"a.jinja": "a", "c.jinja": "c", "b.py": "b", "fix.patch": "d", "blob": "\0"}
    _steps("set -e\ncp a.jinja $WORKSPACE_DIR/\n", files)
    with pytest.raises(Unfit):
        _steps(f"set -e\ncp a.jinja $WORKSPACE_DIR/\n{line}\n", files)
