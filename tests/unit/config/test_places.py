"""A site's own templates, catalog and roles go before the library's."""

from pathlib import Path

import pytest

from sparkwright.catalog import load_catalog
from sparkwright.config.places import CATALOG, TEMPLATES, catalogs, template_folders
from sparkwright.config.templates import template

RECIPE = "qwen36-35b-a3b-heretic-dflash"


def test_a_site_without_folders_of_its_own_has_the_library_s(here: Path) -> None:
    assert catalogs() == [CATALOG]
    assert template_folders() == [TEMPLATES]


def test_a_template_of_the_site_goes_first_and_the_others_stay(here: Path) -> None:
    (here / "templates/watch").mkdir(parents=True)
    (here / "templates/watch/unit.timer.j2").write_text("mine")
    assert template("watch/unit.timer.j2").render() == "mine"
    assert template("serving/unit.service.j2").filename == str(
        TEMPLATES / "serving/unit.service.j2"
    )


def test_each_site_has_templates_of_its_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (here / name / "templates").mkdir(parents=True)
        (here / name / "templates/name.j2").write_text(name)
        monkeypatch.chdir(here / name)
        assert template("name.j2").render() == name


def test_the_catalog_of_the_site_goes_over_the_library_s(here: Path) -> None:
    (here / "catalog").mkdir()
    (here / "catalog/mine.yaml").write_text(
        f"kind: recipe\nname: {RECIPE}\nextends: true\ntitle: mine\n"
    )
    assert load_catalog(catalogs()).recipes[RECIPE].title == "mine"


def test_directories_that_are_named_keep_their_order(here: Path) -> None:
    (here / "catalog").mkdir()
    assert catalogs(["more"]) == [CATALOG, Path("catalog"), Path("more")]
    assert catalogs(["more", "./catalog"]) == [CATALOG, Path("more"), Path("catalog")]
