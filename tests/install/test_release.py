"""A release as a package index judges it: metadata, the README's rendering, the contents."""

import io
import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata, parse_email
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from readme_renderer import markdown
from trove_classifiers import classifiers

from sparkwright import __version__
from tests.unit.builders import ROOT


@pytest.fixture(scope="module")
def uploads(wheel: Path, sdist: Path) -> dict[str, bytes]:
    """Metadata of the wheel and of the sdist."""
    with zipfile.ZipFile(wheel) as archive:
        of_wheel = archive.read(f"sparkwright-{__version__}.dist-info/METADATA")
    with tarfile.open(sdist) as archive:
        file = archive.extractfile(f"sparkwright-{__version__}/PKG-INFO")
        assert file
        return {wheel.name: of_wheel, sdist.name: file.read()}


def test_metadata_is_valid_and_equal_in_wheel_and_sdist(uploads: dict[str, bytes]) -> None:
    of_wheel, of_sdist = uploads.values()
    assert of_wheel == of_sdist
    metadata = Metadata.from_email(of_wheel)  # from_email raises for every invalid field
    assert parse_email(of_wheel)[1] == {}, "fields that nobody knows"
    assert set(metadata.classifiers or ()) <= classifiers
    assert "\n" not in (metadata.summary or "\n")
    for name in uploads:
        parsed = (parse_wheel_filename if name.endswith(".whl") else parse_sdist_filename)(name)
        assert parsed[:2] == (metadata.name, metadata.version)


def test_the_readme_renders_as_on_an_index(uploads: dict[str, bytes]) -> None:
    metadata = Metadata.from_email(next(iter(uploads.values())))
    warnings = io.StringIO()
    text = metadata.description or ""
    page = markdown.render(text, stream=warnings)
    assert metadata.description_content_type == "text/markdown"
    assert page
    assert warnings.getvalue() == ""
    assert page.count("<h2 ") == text.count("\n## ")
    assert page.count("<table>") == text.count("| --- |\n")
    assert "<!--" not in page


def test_the_sdist_has_the_repositorys_files(sdist: Path) -> None:
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("no repository here")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        owners = {(member.uid, member.uname) for member in archive.getmembers()}
    assert names ^ set(listing.stdout.splitlines()) == {"PKG-INFO"}
    assert owners == {(0, "")}


@pytest.mark.skipif("SPARKWRIGHT_DIST" not in os.environ, reason="no release: make release-check")
def test_a_release_has_three_files_of_one_version(wheel: Path, sdist: Path) -> None:
    sbom = wheel.with_suffix(".cdx.json")
    assert {*wheel.parent.glob(f"*{__version__}*")} == {wheel, sdist, sbom}
    assert json.loads(sbom.read_text())["metadata"]["component"]["version"] == __version__
