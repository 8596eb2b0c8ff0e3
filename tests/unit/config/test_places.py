"""A site's own templates, catalog and roles take precedence over the library's."""

from pathlib import Path

import pytest

from sparkwright.config.places import CATALOG, TEMPLATES, catalogs, template_folders
from sparkwright.config.templates import template


def test_a_site_without_its_own_folders_uses_the_librarys_folders(here: Path) -> None:
    assert catalogs() == [CATALOG]
    assert template_folders() == [TEMPLATES]


def test_each_site_has_its_own_templates(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (here / name / "templates").mkdir(parents=True)
        (here / name / "templates/name.j2").write_text(name)
        monkeypatch.chdir(here / name)
        assert template("name.j2").render() == name


def test_named_directories_keep_their_order(here: Path) -> None:
    (here / "catalog").mkdir()
    assert catalogs(["more"]) == [CATALOG, Path("catalog"), Path("more")]
    assert catalogs(["more", "./catalog"]) == [CATALOG, Path("more"), Path("catalog")]
