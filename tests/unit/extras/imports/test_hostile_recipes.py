"""A recipe is a third party's text: its attempts during an import, and their results."""

import json
import os
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest
import yaml

from sparkwright.config.inventory import HostInput
from sparkwright.config.registries import registry_address
from sparkwright.extras.imports.command import write
from sparkwright.extras.imports.sources import of_path
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import git as git_program
from sparkwright.resolve.recipe_registry import snapshot
from sparkwright.site.fleet import plan_fleet
from tests.tables import Tables
from tests.unit.cli.answering import exits, run
from tests.unit.extras.imports.recipes import findings_of, git, minimal, of_text, recipe

cases = Tables(__file__)

BOMBS = {
    "laughs": "a0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)),
    "merges": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
    "depth": "model: " + "[" * 20_000,
    "itself": "model: &a [*a]\n",
    "length": "model: x\n" + "#" * 300_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_yaml_that_grows_without_end_is_refused_at_once(bomb: str) -> None:
    begun = time.process_time()
    tracemalloc.start()
    try:
        result = of_text(BOMBS[bomb])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not result.entries
    assert peak < 100 * 1024**2
    assert time.process_time() - begun < 10


def test_placeholders_that_double_are_refused() -> None:
    defaults = {f"k{n}": f"{{k{n + 1}}}{{k{n + 1}}}" * 20 for n in range(12)}
    result = of_text(minimal("vllm serve {model} --seed {k0}", defaults=defaults))
    assert "longer than" in result.findings[-1].observed


@pytest.mark.parametrize("name", ["../../outside", "/etc/cron.d/x", "..", "a/../../b", "\x1b[2J"])
def test_no_name_points_outside_the_catalog(name: str, tmp_path: Path) -> None:
    result = of_text(minimal(name=name), name=f"{name}/fine")
    assert result.entries
    write(result, tmp_path / "site/catalog", replace=False)
    vllm = json.dumps({
        "meta": {"slug": name, "title": name}, "model": {"model_id": "example/Small-4B"},
        "variants": {f"{name}/v": {}},
    })  # fmt: skip
    result = of_text(vllm)
    if result.entries:
        write(result, tmp_path / "site/catalog", replace=True)
    assert {path.name for path in tmp_path.iterdir()} == {"site"}


@pytest.mark.parametrize("model", ["../../etc/passwd", "/etc/passwd", "a/../b", "a/b c"])
def test_a_model_is_a_repository_and_not_a_path(model: str) -> None:
    assert of_text(minimal("vllm serve example/x", model=model)).entries
    assert not of_text(minimal(f"vllm serve '{model}'")).entries


@cases("command")
def test_a_script_is_refused_and_not_run(command: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    assert not of_text(minimal(command.replace("{ran}", str(ran)))).entries
    assert not ran.exists()


def test_no_variable_or_program_of_the_controller_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "of-the-controller")
    ran = tmp_path / "ran"
    hooks = {key: [f"touch {ran}"] for key in ("pre_exec", "post_exec", "post_commands")}
    env = {"A": "$MY_SECRET", "B": "${MY_SECRET}", "C": f"$(touch {ran})", "MAX_JOBS": "4"}
    command = f"vllm serve {{model}} --seed '$(touch {ran})' --dtype `touch${{IFS}}{ran}`"
    result = of_text(
        minimal(f"{command} --runner ${{MY_SECRET}}", env=env, mods=["mods/x"], **hooks)
    )
    made = recipe(result)
    assert made["environment"] == {"MAX_JOBS": "4"}
    assert set(made["arguments"]) == {"gpu_memory_utilization"}
    named = set(findings_of(result, "left-out"))
    assert {"env.A", "env.B", "env.C", "mods", "pre_exec", "post_exec", "post_commands"} <= named
    assert {"command --seed", "command --dtype", "command --runner"} <= named
    assert "of-the-controller" not in json.dumps(made, default=str)
    assert not ran.exists()


def test_a_version_1_field_accesses_no_attribute_of_a_value() -> None:
    text = {
        "recipe_version": "1", "model": "a/b", "container": "vllm-node",
        "command": "vllm serve a/b --seed {port.__class__.__mro__}", "defaults": {"port": 1},
    }  # fmt: skip
    assert "__mro__" in of_text(json.dumps(text)).findings[-1].observed


@cases("attack", "key")
def test_an_imported_recipe_loads_no_code_reads_no_files_and_sends_no_data(
    attack: str, key: str, here: Path
) -> None:
    """The import and each later check name the omitted key."""
    name, _, value = attack.partition("=")
    text = minimal(f"vllm serve {{model}} {attack}")
    result = of_text(text if attack[0] == "-" else minimal(env={name: value}))
    made = recipe(result)
    left_out = findings_of(result, "left-out")
    assert not result.whole
    assert key in left_out
    assert left_out[key].reason
    assert "evil" not in json.dumps([made["arguments"], made["environment"]])
    assert not {*made["arguments"]} - {"gpu_memory_utilization", "speculative_config"}
    assert made["environment"] == {}
    write(result, here / "catalog", replace=False)
    fleet = plan_fleet([HostInput("box", {"services": {"s": {"recipe": "mine"}}}, lambda _: "x")])
    (warning,) = [each for each in fleet.hosts["box"].violations if each.id == "left-out"]
    assert key.partition(".")[2] in warning.observed


def test_code_added_by_an_update_of_a_registry_is_named_and_left_out(here: Path) -> None:
    """Variables that the site allows by name are kept; variables with other names are omitted."""
    kept = {"VLLM_USE_DEEP_GEMM": "0"}
    Path("mine.yaml").write_text(minimal(env=kept))
    assert run("import", "mine.yaml").exit_code == 0
    Path("mine.yaml").write_text(minimal(env={**kept, "VLLM_PLUGINS": "p", "PYTHONPATH": "/x"}))
    done = run("import", "mine.yaml", "--replace")
    written = Path("catalog/recipes/mine.yaml")
    assert "VLLM_PLUGINS=p" in done.output
    assert yaml.safe_load(written.read_text())["environment"] == kept
    Path("lab.py").write_text(
        "sparks = [('box', {'allowed_in_recipes': {'VLLM_PLUGINS': 'our own plugin'}})]\n"
    )
    options = ["--replace", "--inventory", "lab.py"]
    done = run("import", "mine.yaml", *options)
    assert "PYTHONPATH=/x" in done.output
    assert yaml.safe_load(written.read_text())["environment"] == {**kept, "VLLM_PLUGINS": "p"}


def test_code_of_the_repository_is_kept_only_on_request() -> None:
    text = minimal("vllm serve {model} --trust-remote-code --middleware evil.code")
    without = of_text(text)
    assert not {"trust_remote_code", "middleware"} & set(recipe(without)["arguments"])
    assert (
        "--allow-remote-code"
        in findings_of(without, "left-out")["arguments.trust_remote_code"].reason
    )
    kept = of_text(text, remote_code=True)
    assert recipe(kept)["arguments"]["trust_remote_code"] is True
    assert "arguments.trust_remote_code" in findings_of(kept, "risk")


@pytest.mark.parametrize("code", [False, True])
def test_a_file_of_a_mod_may_only_be_a_template_or_an_allowed_plugin(
    code: bool, here: Path
) -> None:
    """A logging file, a class and a configuration of the model can run code."""
    names = {
        "log_config_file": "log.json", "worker_cls": "w.txt", "hf_config_path": "h.json",
        "speculative_config": "s.json", "generation_config": "g.json", "hf_overrides": "o.txt",
        "chat_template": "c.jinja", "tool_parser_plugin": "w.txt",
    }  # fmt: skip
    script = f"cp {' '.join({*names.values()})} $WORKSPACE_DIR/\n"
    files = {"run.sh": script, **dict.fromkeys(names.values(), "{}")}
    files["c.jinja"] = "{{ messages[-1].content }}"
    options = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in names.items())
    text = minimal(f"vllm serve {{model}} {options}", mods=["mods/x"])
    result = of_text(text, mods=lambda _: files, remote_code=code)
    plugin = {"tool_parser_plugin"} if code else set()
    kept = {"gpu_memory_utilization", "chat_template", *plugin}
    assert {*recipe(result)["arguments"]} == kept
    assert not result.whole
    write(result, here / "catalog", replace=False)
    path = here / "catalog/recipes/mine.yaml"
    data = yaml.safe_load(path.read_text())
    data["arguments"] |= {"log_config_file": "/opt/sparkwright/files/log.json"}
    path.write_text(yaml.safe_dump(data))
    fleet = plan_fleet([HostInput("box", {"services": {"s": {"recipe": "mine"}}}, lambda _: "x")])
    findings = [each for each in fleet.hosts["box"].violations if each.id == "imported-setting"]
    assert [finding.observed.partition(" ")[0] for finding in findings] == ["log_config_file"]


def test_the_publisher_of_an_image_is_named() -> None:
    result = of_text(minimal(container="registry.evil.example:5000/x/vllm:latest"))
    shown = [finding.observed for finding in result.findings if finding.id == "import-risk"]
    assert "registry.evil.example:5000/x/vllm:latest" in shown
    assert not of_text(minimal(container="ghcr.io/x/y:latest --privileged")).entries


def test_a_recipe_does_not_replace_the_librarys_recipe(tmp_path: Path) -> None:
    """Services name recipes: a recipe of the same name in the site's catalog would replace it."""
    name = "qwen36-35b-a3b-heretic-dflash"
    result = of_text(minimal(), name=name)
    assert not result.entries
    assert "another recipe of this name" in result.findings[-1].reason
    # A model's name is derived from its repository: another repository gets another name.
    other = of_text(minimal(model="qwen35/4b"))
    assert other.entries
    assert ("model", "qwen35-4b") not in other.entries


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text(minimal())
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "file.yaml").symlink_to(secret)
    (folder / "below/folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.yaml")
    assert of_path(folder) == []


@cases("address")
def test_git_gets_only_allowed_addresses(address: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"."):
        registry_address(address)
    with pytest.raises(UserError):
        snapshot(address, cache=tmp_path)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository with links, hooks, filters, a submodule and a file without end."""
    there = tmp_path / "there"
    there.mkdir()
    git(there, "init", "--quiet")
    (there / "fine.yaml").write_text(minimal())
    (there / "outside.yaml").symlink_to("/etc/passwd")
    (there / "large.yaml").write_text("x" * 1_000_000)
    (there / ".gitattributes").write_text("*.yaml filter=lfs filter=evil\n")
    modules = f'[submodule "s"]\n\tpath = s\n\turl = {tmp_path / "elsewhere"}\n'
    (there / ".gitmodules").write_text(modules)
    hook = there / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    hook.chmod(0o755)
    git(there, "add", "-A")
    git(there, "commit", "--quiet", "-m", "x")
    return there


def test_a_registry_is_read_and_never_checked_out(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text(f'[filter "evil"]\n\tsmudge = touch {tmp_path / "ran"}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    result = snapshot(str(hostile), cache=tmp_path / "cache")
    assert result.files() == [".gitattributes", ".gitmodules", "fine.yaml"]
    assert result.read("fine.yaml") == minimal()
    assert not (tmp_path / "ran").exists()
    assert not list((tmp_path / "cache").rglob("*.yaml"))


def test_a_pinned_commit_stays_when_the_branch_moves(hostile: Path, tmp_path: Path) -> None:
    first = snapshot(str(hostile), cache=tmp_path / "cache")
    (hostile / "fine.yaml").write_text("changed: true\n")
    git(hostile, "commit", "--quiet", "-am", "y")
    assert snapshot(str(hostile), cache=tmp_path / "cache").commit != first.commit
    for cache in (tmp_path / "cache", tmp_path / "another"):
        again = snapshot(str(hostile), first.commit, cache=cache)
        assert (again.commit, again.read("fine.yaml")) == (first.commit, minimal())


def test_an_endless_repository_is_cut_off(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_program, "MOST_BYTES", 64 * 1024)
    (hostile / "noise.bin").write_bytes(os.urandom(1_000_000))
    git(hostile, "add", "-A")
    git(hostile, "commit", "--quiet", "-m", "z")
    with pytest.raises(UserError):
        snapshot(str(hostile), cache=tmp_path / "cache")


def test_a_tree_of_a_hundred_million_files_is_cut_off(hostile: Path, tmp_path: Path) -> None:
    """Eight nested trees, each with ten equal entries, are less than a KiB to fetch."""
    blob = git(hostile, "hash-object", "-w", "fine.yaml")
    tree = "".join(f"100644 blob {blob}\tf{number}\n" for number in range(10))
    for _ in range(8):
        made = subprocess.run(
            ["git", "mktree"], cwd=hostile, input=tree, capture_output=True, text=True, check=True
        ).stdout.strip()
        tree = "".join(f"040000 tree {made}\td{number}\n" for number in range(10))
    commit = git(hostile, "commit-tree", made, "-m", "bomb")
    git(hostile, "update-ref", "HEAD", commit)
    registry = snapshot(str(hostile), cache=tmp_path / "cache")
    tracemalloc.start()
    try:
        with pytest.raises(UserError):
            registry.files()
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_recipes_text_is_shown_without_escapes(here: Path) -> None:
    title = "fine\x1b]0;owned\x07\u202e"
    Path("evil.yaml").write_text(minimal(metadata={"description": title}, **{title: title}))
    assert not {"\x1b", "\u202e"} & set(exits(0, "import", "evil.yaml").output)
    assert (here / "catalog/recipes/evil.yaml").is_file()
