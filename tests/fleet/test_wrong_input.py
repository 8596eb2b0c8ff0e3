"""Wrong input causes one clear message before any host is touched, without a traceback."""

import re
from collections.abc import Callable

import pytest

from tests.fleet.site import Site

SPARKS = "group_data/sparks.py"
RECIPES = "catalog/recipes/qwen36-35b-a3b-heretic-dflash.yaml"


def _write(file: str, text: str) -> Callable[[Site], object]:
    return lambda site: (site.folder / file).write_text(text)


def _edit(file: str, old: str, new: str) -> Callable[[Site], object]:
    return lambda site: site.edit(file, old, new)


def _rename(old: str, new: str) -> Callable[[Site], object]:
    return lambda site: (site.folder / old).rename(site.folder / new)


def _nothing(site: Site) -> None:
    return


TWICE = 'services = {n: {"recipe": "qwen36-35b-a3b-heretic-dflash"} for n in ("a", "b")}\n'
CASES: dict[str, tuple[Callable[[Site], object], list[str], list[str]]] = {
    "yaml that is none": (
        _write("catalog/models/x.yaml", "kind: [\n"),
        [],
        ["catalog/models/x.yaml", "not valid YAML"],
    ),
    "python that is none": (
        _write(SPARKS, "services = {\n"),
        [],
        [SPARKS, "line 1", "not valid Python"],
    ),
    "name that is none": (_write(SPARKS, "services = servces\n"), [], [SPARKS, "NameError"]),
    "port twice": (_write(SPARKS, TWICE), [], ["services.b.port", "8000", "taken by service 'a'"]),
    "wrong key in the catalog": (
        _edit(RECIPES, "served_names:", "served_nmes:"),
        [],
        [RECIPES, "served_nmes"],
    ),
    "typo in --limit": (_nothing, ["--limit", "spark-9"], ["--limit spark-9", "did you mean"]),
    "typo in --data": (_nothing, ["--data", "imge_tag=x"], ["--data: imge_tag", "'image_tag'"]),
    "typo in a group of the inventory": (
        _edit("inventory/virtual.py", "sparks = ", "sparkz = "),
        [],
        ["group_data/sparks.py", "no group 'sparks'", "'sparkz'"],
    ),
    "typo in a file of group_data": (
        _rename(SPARKS, "group_data/spraks.py"),
        [],
        ["group_data/spraks.py", "'sparks'", "no services"],
    ),
    "empty key": (_nothing, [], ["SPARKWRIGHT_API_KEY", "not a usable API key"]),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_input_is_reported_before_any_host_is_touched(site: Site, case: str) -> None:
    site.repair()
    prepare, arguments, expected = CASES[case]
    prepare(site)
    environment = {"SPARKWRIGHT_API_KEY": ""} if case == "empty key" else {}
    try:
        run = site.run("--yes", *arguments, **environment)
    finally:
        site.repair()
    assert run.code == 2, run.output
    for text in expected:
        assert text in run.output
    assert "nothing was touched" in run.output
    assert "Connecting" not in run.output


def test_a_missing_inventory_is_reported(site: Site) -> None:
    run = site.run("--yes", inventory="inventory/labb.py")
    assert run.code == 2
    assert "inventory/labb.py" in run.output


def test_a_command_without_yes_and_a_terminal_does_not_hang(site: Site) -> None:
    run = site.run()
    assert run.code == 2
    assert "--yes" in run.output


def test_the_example_inventory_fails_only_at_the_connection(site: Site) -> None:
    """The inventory's hosts do not exist, so that only the connection may fail."""
    mirror = [
        'image_mirrors={"ghcr.io": "http://10.213.77.2:5000",'
        ' "registry-1.docker.io": "http://10.213.77.2:5000"}',
        "hub_endpoint=http://10.213.77.2:8880",
    ]
    arguments = [word for text in mirror for word in ("--data", text)]
    # A name that exists in no network.
    text = (site.folder / "inventory/lab.py").read_text()
    nobody = re.sub(r'"((spark|rtx)-\d)"(?=[],])', r'("\1", {"ssh_hostname": "\1.invalid"})', text)
    site.edit("inventory/lab.py", text, nobody)
    try:
        run = site.run("--dry", *arguments, inventory="inventory/lab.py")
    finally:
        site.repair()
    assert run.code == 1
    assert run.refused == {"spark-1", "spark-2", "rtx-1"}
    assert "not reached" in run.output
