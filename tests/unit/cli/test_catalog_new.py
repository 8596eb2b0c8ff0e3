"""`sparkwright catalog new`: sparkwright and editors accept its output unchanged."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from sparkwright.catalog import load_catalog
from sparkwright.catalog.draft import PLACEHOLDERS
from sparkwright.catalog.reader import KINDS, schema
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT, catalog
from tests.unit.cli import answering
from tests.unit.engines.derivation.repositories import REPOSITORY, on_the_hub, repository

cases = Tables(__file__)

jsonschema: Any = pytest.importorskip("jsonschema", reason="make setup installs jsonschema")


def run(*arguments: str, code: int = 0) -> Result:
    done = answering.run(*arguments)
    assert done.exit_code == code, done.output
    return done


def valid(path: Path) -> dict[str, Any]:
    """Contents of a file, validated by the schema that its first line names."""
    text = path.read_text()
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    data: dict[str, Any] = safe_load(text)
    jsonschema.validate(data, json.loads((path.parent / named).read_text()))
    return data


@cache
def shipped() -> list[dict[str, Any]]:
    """Every shipped entry, as JSON."""
    texts = [path.read_text() for path in sorted((ROOT / "catalog").rglob("*.yaml"))]
    return [json.loads(json.dumps(safe_load(text), default=str)) for text in texts]


@pytest.mark.parametrize("kind", sorted(PLACEHOLDERS))
def test_a_new_entry_is_valid_with_every_key_explained(here: Path, kind: str) -> None:
    run("catalog", "new", kind, "mine")
    path = here / f"catalog/{kind}s/mine.yaml"
    valid(path)
    assert load_catalog([ROOT / "catalog", here / "catalog"])
    for key in KINDS[kind].model_fields:
        assert (
            f"\n{key}: " in path.read_text()
            or f"\n# {key}: " in path.read_text()
            or (f"\n{key}:\n" in path.read_text())
        ), key
    if kind == "recipe":
        run("check", "--recipe", "mine")


def test_an_entry_made_from_an_entry_is_a_copy_under_a_new_name(here: Path) -> None:
    base = catalog().recipes["qwen36-35b-a3b-nvfp4-rtx5090"]
    run("catalog", "new", "recipe", "mine", "--from", base.name)
    file = here / "catalog/recipes/mine.yaml"
    valid(file)
    file.write_text(file.read_text().replace("max_num_seqs: 8", "max_num_seqs: 4"))
    made = load_catalog([ROOT / "catalog", here / "catalog"]).recipes["mine"]
    assert made.arguments == {**base.arguments, "max_num_seqs": 4}
    assert (made.body, made.needs, made.environment) == (base.body, base.needs, base.environment)
    run("check", "--recipe", "mine")


def test_an_entry_from_a_repository_names_its_sources(here: Path) -> None:
    with on_the_hub(repository()):
        run("catalog", "new", "recipe", "mine", "--model", REPOSITORY, "--gpu", "rtx5090")
    text = (here / "catalog/recipes/mine.yaml").read_text()
    assert f"max_model_len: 40960    # config.json of {REPOSITORY}@abc1234" in text
    assert valid(here / "catalog/recipes/mine.yaml")["body"]["model"] == "mine"
    assert valid(here / "catalog/models/mine.yaml")["format"] == "fp8"
    run("check", "--recipe", "mine")


@pytest.mark.parametrize("name", ["../evil", "/etc/x", "-x", "A b", "x\ny", ""])
def test_a_name_that_is_a_path_or_an_option_is_refused(here: Path, name: str) -> None:
    assert "is not a valid name" in run("catalog", "new", "recipe", "--", name, code=2).output
    assert list(here.rglob("*")) == []


def test_an_existing_file_is_not_overwritten(here: Path) -> None:
    run("catalog", "new", "model", "mine")
    file = here / "catalog/models/mine.yaml"
    file.write_text("kind: model\n# my work\n")
    assert "this file already exists" in run("catalog", "new", "model", "mine", code=2).output
    assert "my work" in file.read_text()
    file.unlink()
    file.symlink_to(here / "elsewhere")
    run("catalog", "new", "model", "mine", code=2)
    assert not (here / "elsewhere").exists()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_schema_accepts_every_shipped_entry_and_explains_its_keys(kind: str) -> None:
    data = json.loads(run("catalog", "schema", kind).output)
    assert data == schema(kind)
    entries = [item for item in shipped() if item["kind"] == kind]
    assert entries
    validator = jsonschema.Draft202012Validator(data)
    for entry in entries:
        validator.validate(entry)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"kind": kind, "name": "x"}, data)
    jsonschema.validate({"kind": kind, "name": "x", "extends": True}, data)


def test_check_reads_the_inventorys_catalog_and_data(here: Path) -> None:
    run("catalog", "new", "recipe", "mine", "--directory", "elsewhere")
    assert "there is no recipe" in run("check", "--recipe", "mine", code=2).output
    run("check", "--recipe", "mine", "--data", 'catalog_directories=["elsewhere"]')
    (here / "inventory").mkdir()
    (here / "inventory/lab.py").write_text(
        'sparks = [("a", {"catalog_directories": ["elsewhere"]})]\n'
    )
    run("check", "--recipe", "mine")
    assert "did you mean" in run("check", "--recipe", "mine", "--data", "imge_tag=x", code=2).output


MODEL = {"kind": "model", "name": "a", "repository": "a/b", "family": "f", "role": "body",
         "format": "fp8"}  # fmt: skip


@cases("entries", "message")
def test_an_entry_with_an_unknown_base_or_a_missing_key_is_reported(
    here: Path, entries: list[dict[str, Any]], message: str
) -> None:
    for entry in entries:
        (here / f"{entry['name']}.yaml").write_text(yaml.safe_dump(entry))
    with pytest.raises(Exception, match=message):
        load_catalog([ROOT / "catalog", here])
