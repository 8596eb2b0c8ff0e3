"""A new site: its files, protection of existing files, and the next steps."""

from pathlib import Path

import pytest
from click.testing import Result

from sparkwright.bootstrap.gpu_question import Box
from sparkwright.catalog.gpus import VRAM
from sparkwright.cli import init
from sparkwright.config.inventory import read_inventory
from sparkwright.config.skeleton import FILES, INVENTORY, write
from sparkwright.findings.user_error import UserError
from sparkwright.site.fleet import plan_fleet
from tests.tables import Tables
from tests.unit.builders import ROOT
from tests.unit.cli.answering import exits, run

cases = Tables(__file__)

HOSTS = (
    *("--host", "spark-1", "--gpu", "gb10", "--host", "rtx-1", "--gpu", "rtx5090"),
    *("--host", "big", "--gpu", "rtx-pro-6000", "--host", "small", "--gpu", "rtx5080"),
    *("--host", "laptop", "--gpu", "rtx5090-laptop", "--host", "ti", "--gpu", "rtx5070ti"),
    *("--host", "h", "--gpu", "h100", "--host", "h2", "--gpu", "h200"),
)


def _init(*arguments: str) -> Result:
    return run("init", *arguments)


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_new_site_is_the_root_of_this_repository(here: Path) -> None:
    assert _init("my-lab").exit_code == 0
    assert _files(here / "my-lab") == set(FILES)
    for name in set(FILES) - {".gitignore", INVENTORY}:
        assert (here / "my-lab" / name).read_text() == (ROOT / name).read_text()
    assert "spark-1" not in (here / "my-lab" / INVENTORY).read_text().rpartition('"""')[2]


def test_init_detects_the_gpu_of_hosts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"spark-1": Box("spark-1", "gb10"), "old": Box("old", why="refused")}
    monkeypatch.setattr(init, "boxes", lambda names: [answers[name] for name in names])
    done = exits(2, "init", "my-lab", "--host", "spark-1", "--host", "old")
    assert "--host old" in done.output
    assert "the host's GPU is unknown: refused" in done.output
    assert _files(here) == set()
    assert _init("my-lab", "--host", "spark-1").exit_code == 0
    assert "sparks = ['spark-1']" in (here / "my-lab" / INVENTORY).read_text()


def test_a_host_may_be_named_with_its_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "boxes", lambda names: [Box(name, "gb10") for name in names])
    assert _init("asked", "--host", "me@box").exit_code == 0
    assert _init("given", "--host", "me@box", "--gpu", "gb10").exit_code == 0
    for folder in ("asked", "given"):
        (host,) = read_inventory(here / folder / INVENTORY, group_data=False)
        assert (host.name, host.data) == ("box", {"ssh_user": "me"})
    for names in (("me@box", "you@box"), ("-oProxyCommand=x@box",), ("me@you@box",)):
        arguments = [word for name in names for word in ("--host", name)]
        assert _init("none", *arguments).exit_code == 2


def test_hosts_get_the_group_and_recipe_of_their_gpu(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _init("my-lab", *HOSTS).exit_code == 0
    monkeypatch.chdir(here / "my-lab")
    planned = plan_fleet(read_inventory(Path("inventory/lab.py"))).or_raise()
    recipes = {
        name: [service.recipe.name for service in host.plan.services]
        for name, host in planned.items()
    }
    assert recipes == {
        "spark-1": ["qwen36-35b-a3b-heretic-dflash"],
        "rtx-1": ["qwen36-35b-a3b-nvfp4-rtx5090"],
        "big": ["qwen36-35b-a3b-nvfp4-rtx-pro-6000"],
        "small": ["qwen35-4b-rtx-16gb"],
        "laptop": ["qwen35-4b-rtx-24gb"],
        "ti": ["qwen35-4b-rtx-16gb"],
        "h": ["qwen36-35b-a3b-fp8-h200"],
        "h2": ["qwen36-35b-a3b-fp8-h200"],
    }
    assert not any(host.violations for host in planned.values())


def test_a_card_too_small_for_every_recipe_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VRAM, "rtx5080", 5.9)
    text = exits(0, "init", "my-lab", "--host", "small", "--gpu", "rtx5080")
    assert "small: no recipe of the catalog fits the 5.9 GiB of rtx5080" in text.output


def test_init_prints_the_next_commands(here: Path) -> None:
    assert [line for line in _init("my lab").output.splitlines() if line.startswith("  ")] == [
        "    cd 'my lab' && sparkwright check",
        "    sparkwright deploy --dry",
        "    sparkwright deploy",
    ]
    assert "\n    sparkwright check" in _init(".").output


def test_no_file_is_overwritten_or_half_written(here: Path) -> None:
    site = here / "my-lab"
    (site / "group_data").mkdir(parents=True)
    (site / "group_data/sparks.py").write_text("mine")
    (site / "deploy.py").symlink_to("nowhere")
    text = exits(2, "init", "my-lab")
    assert "my-lab/group_data/sparks.py" in text.output
    assert "my-lab/deploy.py" in text.output
    assert _files(here) == {"my-lab/group_data/sparks.py"}
    assert (site / "group_data/sparks.py").read_text() == "mine"


@pytest.mark.parametrize("blocking", ["my-lab", "my-lab/inventory"])
def test_a_file_in_place_of_a_folder_is_reported(here: Path, blocking: str) -> None:
    (here / blocking).parent.mkdir(exist_ok=True)
    (here / blocking).write_text("mine")
    assert f"{blocking}\n" in exits(2, "init", "my-lab").output
    assert _files(here) == {blocking}


def test_other_files_in_the_folder_stay(here: Path) -> None:
    (here / "my-lab/roles/hello").mkdir(parents=True)
    (here / "my-lab/README.md").write_text("mine")
    assert _init("my-lab").exit_code == 0
    assert _files(here / "my-lab") == {*FILES, "README.md"}


def test_written_files_are_removed_if_the_rest_fails(here: Path) -> None:
    with pytest.raises(UserError, match=r"can't be written"):
        write(here / "my-lab", {"one": "1", "two/three": "3", "x" * 300: ""})
    assert list(here.iterdir()) == []


@cases("arguments", "reason")
def test_bad_host_names_are_refused(here: Path, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in exits(2, "init", "my-lab", *arguments).output
    assert list(here.iterdir()) == []
