"""Registries of recipes: named in the settings, pinned in the lock, read by imports."""

import shutil
from pathlib import Path

import pytest

from sparkwright.resolve.lock import Lock, read_lock, render_lock
from sparkwright.resolve.recipe_registry import with_registries
from tests.libyaml import safe_load
from tests.unit.cli.answering import exits, run
from tests.unit.extras.imports.recipes import FIXTURES, git, git_registry, minimal


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """A git repository with the recipes of these tests."""
    there = tmp_path / "registry"
    shutil.copytree(FIXTURES / "registry", there)
    return git_registry(there)


@pytest.fixture
def site(tmp_path: Path, registry: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site that names the registry."""
    folder = tmp_path / "site"
    (folder / "inventory").mkdir(parents=True)
    (folder / "group_data").mkdir()
    (folder / "inventory/lab.py").write_text("sparks = ['spark-1']\n")
    (folder / "group_data/all.py").write_text(
        f"registries = {{'ours': {str(registry)!r}}}\n"
        "services = {'chat': {'recipe': 'qwen36-35b-a3b-heretic-dflash'}}\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return folder


def _refused(*arguments: str) -> str:
    result = exits(2, *arguments)
    return result.output


def test_a_recipe_of_a_registry_is_imported_and_its_source_names_the_commit(
    site: Path, registry: Path
) -> None:
    first = run("import", "@ours/pair/first", "--name", "two-sparks")
    assert first.exit_code == 1, first.output  # --gpu-memory-utilization-gb needs a mod
    text = (site / "catalog/recipes/two-sparks.yaml").read_text()
    commit = git(registry, "rev-parse", "HEAD")
    assert f"{registry}@{commit}:recipes/pair/first.yaml" in text
    original = (site / "catalog/recipes/two-sparks.original").read_bytes()
    assert original == (registry / "recipes/pair/first.yaml").read_bytes()
    assert run("check", "--recipe", "two-sparks").exit_code == 2  # the recipe needs two Sparks
    again = run("import", "@ours/pair/first", "--name", "two-sparks")
    assert (again.exit_code, "wrote" in again.output) == (1, False), again.output


def test_the_lock_pins_a_registry_until_an_upgrade(site: Path, registry: Path) -> None:
    first = git(registry, "rev-parse", "HEAD")
    lock = with_registries([str(registry)], Lock(images={}, models={}), upgrade=False)
    assert lock.registries == {str(registry): first}
    (site / "fleet.lock").write_text(render_lock(lock))
    assert read_lock(site / "fleet.lock") == lock
    (registry / "recipes/generated.yaml").unlink()
    git(registry, "commit", "--quiet", "-am", "second")
    assert run("import", "@ours/generated").exit_code == 0
    assert with_registries([str(registry)], lock, upgrade=False) == lock
    newer = with_registries([str(registry)], lock, upgrade=True)
    assert newer.registries == {str(registry): git(registry, "rev-parse", "HEAD")}
    (site / "fleet.lock").write_text(render_lock(newer))
    assert "the source has no recipe of this name" in _refused("import", "@ours/generated")
    assert with_registries([], lock, upgrade=False).registries is None


def test_a_wrong_name_or_address_is_a_mistake_with_a_remedy(site: Path) -> None:
    assert "did you mean 'ours'?" in _refused("import", "@our/first")
    assert "the source has no recipe" in _refused("import", "group_data")
    (site / "group_data/all.py").write_text("registries = {'x': 'ext::sh'}\nservices = {}\n")
    assert "https://HOST/REPOSITORY" in run("check").output


def test_an_existing_file_with_other_content_is_not_overwritten(site: Path) -> None:
    assert run("import", "@ours/generated").exit_code == 0
    path = site / "catalog/recipes/generated.yaml"
    path.write_text(path.read_text().replace("0.7", "0.6"))
    assert "the file exists already" in exits(1, "import", "@ours/generated").output
    assert "0.6" in path.read_text()
    assert run("import", "@ours/generated", "--replace").exit_code == 0
    assert "0.7" in path.read_text()


def test_a_whole_registry_is_counted(site: Path) -> None:
    result = exits(1, "import", "@ours", "--dry")
    assert "7 recipes: 0 imported whole, 4 with parts left out, 3 not imported" in result.output
    assert not (site / "catalog").exists()


MODS = {
    "template/run.sh": "cp chat.jinja $WORKSPACE_DIR/other.jinja\n",
    "template/chat.jinja": "{{ messages[-1].content }}",
    "parser/run.sh": "cp parser.py entry.yaml $WORKSPACE_DIR/\n",
    "parser/parser.py": "x = 1\n", "parser/entry.yaml": "kind: recipe\n",
    "fix/run.sh": "patch -p1 -d /opt/engine < fix.diff || true\n", "fix/fix.diff": "--- a/x\n",
    "strange/run.sh": "cp chat.jinja $WORKSPACE_DIR/\npython3 x.py\n",
    "strange/chat.jinja": "{{ x }}",
}  # fmt: skip


def test_mods_of_another_registry_become_files_and_patches(site: Path, registry: Path) -> None:
    for path, text in MODS.items():
        (registry / "mods" / path).parent.mkdir(parents=True, exist_ok=True)
        (registry / "mods" / path).write_text(text)
    git(registry, "add", "-A")
    git(registry, "commit", "--quiet", "-m", "mods")
    command = "vllm serve {model} --chat-template other.jinja --reasoning-parser own "
    command += "--reasoning-parser-plugin parser.py"
    names = ["mods/template", "mods/parser", "mods/fix"]
    (site / "mine.yaml").write_text(minimal(command, mods=[*names, "mods/strange", "mods/../fix"]))
    made = site / "catalog/recipes/mine.yaml"
    without = run("import", "mine.yaml", "--mods", "@ours")
    assert without.exit_code == 1
    for text in (
        "strange: python3 x.py",
        "fix",
        "parser",
        "--allow-remote-code",
        "no registry with this mod is named",
    ):
        assert text in without.output
    recipe = safe_load(made.read_text())
    assert "patches" not in recipe
    assert [file["at"] for file in recipe["files"]] == ["/opt/sparkwright/files/other.jinja"]
    assert recipe["arguments"]["chat_template"] == "/opt/sparkwright/files/other.jinja"
    assert "reasoning_parser" not in recipe["arguments"]
    assert len(list((made.parent / "mods").rglob("*.*"))) == 1
    (site / "mine.yaml").write_text(minimal(command, mods=names))
    options = ["--mods", "@ours", "--allow-remote-code", "--replace"]
    whole = run("import", "mine.yaml", *options)
    assert (whole.exit_code, "1 imported whole" in whole.output) == (0, True), whole.output
    assert "mod fix is kept" in whole.output
    recipe = safe_load(made.read_text())
    plugin = "/opt/sparkwright/files/parser.py"
    assert recipe["arguments"]["reasoning_parser_plugin"] == plugin
    assert recipe["arguments"]["reasoning_parser"] == "own"
    (step,) = recipe["patches"]
    assert (step["into"], step["optional"]) == ("/opt/engine", True)
    files = [made.parent / file["source"] for file in recipe["files"]]
    texts = [path.read_text() for path in (*files, made.parent / step["patch"])]
    assert texts == [MODS["template/chat.jinja"], "kind: recipe\n", "x = 1\n", "--- a/x\n"]
    assert "imported-setting" not in run("check", "--recipe", "mine").output
    assert "unchanged" in run("import", "mine.yaml", *options).output
    # The recipe without its patches, whose base is not pinned yet, is accepted.
    (site / "mine.yaml").write_text(minimal(command, mods=names[:2]))
    assert run("import", "mine.yaml", *options).exit_code == 0
    checked = run("check", "--recipe", "mine")
    assert (checked.exit_code, "absent-file" in checked.output) == (0, False), checked.output
