"""The command line: its output, its exit codes, and no traceback."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click
import pytest

from docs.generate.commands import commands
from sparkwright.catalog.advice import Workload
from sparkwright.catalog.entries import KvLayers
from sparkwright.cli import sections
from sparkwright.cli.lib.extras import all_commands
from sparkwright.resolve.lock import from_resolution, render_lock
from sparkwright.run import pyinfra_cli
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, plan, resolution
from tests.unit.cli.answering import exits, run

cases = Tables(__file__)

pytestmark = pytest.mark.usefixtures("checkout")


def test_check_has_no_finding_in_the_example() -> None:
    result = exits(0, "check", "inventory/lab.py")
    assert "3 hosts, 3 services: 0 errors, 0 warnings, 0 silenced" in result.output


def test_check_names_host_file_key_reason_source_and_remedy() -> None:
    result = exits(2, "check", "inventory/lab.py", "--data", "image_tag=2026-06-11-pr41703")
    assert (
        "error: dflash-concurrency: spark-1, spark-2: recipe qwen36-35b-a3b-heretic-dflash: "
        in result.output
    )
    assert "services.qwen36.arguments.max_num_seqs" in result.output
    assert "card of vllm-ultimate-dgx-spark, note of 2026-06-18" in result.output
    assert "    remedy:   max_num_seqs: 31; or image_tag: 2026-07-01-v0.24.0" in result.output


def test_check_prints_its_findings_as_json() -> None:
    arguments = (
        "check",
        "--recipe",
        "gemma4-26b-a4b-dflash-production",
        "--tag",
        "2026-06-04-pr44389",
    )
    entries = json.loads(run(*arguments, "--json").output)
    assert {entry["id"] for entry in entries} >= {"old-tag", "drafter-window-ignored"}


@cases("arguments", "first")
def test_advice_follows_the_cards(arguments: tuple[str, ...], first: str | None) -> None:
    choices = json.loads(run("advise", *arguments, "--json").output)
    assert next((choice["recipe"] for choice in choices), None) == first
    assert all(choice["source"] for choice in choices)


@pytest.mark.parametrize("workload", get_args(Workload))
@pytest.mark.parametrize("gpu", ["rtx5080", "rtx5090", "rtx-pro-6000"])
def test_advice_for_a_card_names_no_image_without_its_architecture(workload: str, gpu: str) -> None:
    choices = json.loads(run("advise", workload, "--gpu", gpu, "--json").output)
    assert not any(choice["spark_only"] for choice in choices)


def test_catalog_list_and_show_print_entries() -> None:
    listed = json.loads(run("catalog", "list", "--json").output)
    assert len(listed["recipes"]) == len([*Path("catalog/recipes").glob("*.yaml")])
    assert "kv-cache" in listed["rules"]
    assert "version: 0.20.1" in run("catalog", "show", "vllm-openai").output


def test_a_lock_check_sends_no_request(tmp_path: Path) -> None:
    result = exits(
        1, "lock", "inventory/lab.py", "--check", "--data", f"lock_file={tmp_path}/x.lock"
    )
    assert "there is no lock" in result.output


def test_check_judges_contexts_by_the_locks_facts_of_models(tmp_path: Path) -> None:
    host = plan(SPARK)
    lock = from_resolution([host.references], resolution(host), None)
    name = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4@main"
    wide = (KvLayers(layers=1000, heads=2, head_dim=256),)
    locked = replace(lock.models[name], kv=wide)
    lock = lock.model_copy(update={"models": {**lock.models, name: locked}})
    file = tmp_path / "fleet.lock"
    file.write_text(render_lock(lock))
    arguments = ("check", "inventory/lab.py", "--limit", "spark-1", "--data", f"lock_file={file}")
    assert "error: kv-cache: spark-1" in exits(2, *arguments).output
    file.unlink()
    assert run(*arguments[:4]).exit_code == 0
    # A lock that is named must exist, since the run would otherwise pin nothing.
    assert "and nothing would be pinned" in exits(2, *arguments).output


#: Every command that uses an inventory, with its other required arguments.
_BY_INVENTORY = ("check", "plan", "status", "endpoints", "verify", "deploy", "key list")


@pytest.mark.parametrize("command", _BY_INVENTORY)
@cases("there", "text")
def test_an_ambiguous_inventory_must_be_named(
    command: str, there: tuple[str, ...], text: str, here: Path
) -> None:
    (here / "deploy.py").touch()
    (here / "inventory").mkdir()
    for name in there:
        (here / "inventory" / name).touch()
    assert text in exits(2, *command.split()).output


def test_a_site_with_one_inventory_needs_no_name(here: Path) -> None:
    (here / "inventory").mkdir()
    (here / "inventory/home.py").write_text("spark = ['spark-1']\n")
    assert "error: input: spark-1: services\n" in run("check").output
    (here / "inventory/lab.py").write_text("spark = ['spark-2']\n")
    assert "error: input: spark-2: services\n" in run("check").output


@cases("limit", "hosts")
def test_limit_accepts_groups_and_patterns_like_pyinfra(limit: tuple[str, ...], hosts: int) -> None:
    arguments = [word for item in limit for word in ("--limit", item)]
    assert run("check", *arguments).output.startswith(f"{hosts} hosts")


@cases("given", "became")
def test_deploy_runs_pyinfra_with_all_of_its_options(
    given: tuple[str, ...], became: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(pyinfra_cli, "main", seen.append)
    assert run("deploy", *given).exit_code == 0
    assert seen == [became]


def module_of(name: str) -> str:
    return all_commands()[name].module.partition(":")[0]


def test_every_command_is_in_the_help_with_its_line() -> None:
    modules = {f"sparkwright.cli.{path.stem}" for path in (ROOT / "sparkwright/cli").glob("*.py")}
    assert modules - {"sparkwright.cli.__init__"} == {
        module_of(name) for name in all_commands()
        if module_of(name).startswith("sparkwright.cli.")
    }  # fmt: skip
    shown = run("--help").output
    for section in sections().values():
        for line in section.values():
            assert f"  {line}\n" in shown
            assert re.fullmatch(r"[A-Z].*[.]", line)
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_misspelt_command_is_reported_with_the_nearest_command() -> None:
    assert "did you mean 'status'?" in exits(2, "stauts").output


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_are_left_out_on_request(
    setting: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("check", "inventory/lab.py", "--data", "image_tag=x")
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b[" in run(*arguments, color=True).output
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    assert "\x1b[" not in run(*arguments, color=True).output


def test_ctrl_c_exits_with_the_shells_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pyinfra_cli, "main", interrupted)
    result = run("deploy")
    assert (result.exit_code, "Traceback" in result.output) == (130, False)


@pytest.mark.parametrize(
    ("text", "command"), [(arguments, item) for arguments, item, _ in commands()]
)
def test_help_has_whole_sentences(text: str, command: click.Command) -> None:
    assert re.fullmatch(r"[A-Z].*[.]", (command.help or "").strip().split("\n\n")[0], re.S), text
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            message = re.sub(r"\s*\[default: .*\]$", "", option.help or "")
            assert re.fullmatch(r"[A-Z].*[.]", message, re.S), (text, option.opts)


def loaded_modules(script: str) -> set[str]:
    """Modules that a program has loaded at its end."""
    program = f"try:\n    {script}\nfinally:\n    import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_check_loads_only_needed_modules() -> None:
    """0.3 s for four hosts leave no room for modules of other commands."""
    loaded = loaded_modules("from sparkwright.cli import main; main(['check', 'inventory/lab.py'])")
    assert "pydantic" in loaded
    assert not loaded & {"pyinfra", "paramiko", "gevent", "requests", "urllib3", "huggingface_hub",
                         "cryptography", "jinja2", "rich",
                         "sparkwright.host.fetch.steps"}  # fmt: skip


def test_help_and_modules_of_commands_that_query_hosts_load_no_planner() -> None:
    """Sessions load the planner with the first request to hosts, and not for help or mistakes."""
    assert "sparkwright.cli.lib.options" not in loaded_modules("import sparkwright.cli")
    asking = (
        "activate deploy diff history logs maintenance models remove restart rollback shell start"
        " status stop top verify"
    )
    imports = ", ".join({module_of(name) for name in asking.split()})
    assert not {"pydantic", "yaml", "sparkwright.plan.plan"} & loaded_modules(f"import {imports}")
