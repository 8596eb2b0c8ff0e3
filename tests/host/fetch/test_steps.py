"""Steps of a derived image: diffs are read and applied exactly, or refused with line or hunk."""

import base64
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sparkwright.host.fetch import steps
from sparkwright.host.fetch.steps import applied, parse
from tests.tables import Tables

cases = Tables(__file__)

HEAD = "--- a/pkg/x.py\n+++ b/pkg/x.py\n"
DIFF = f"{HEAD}@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


@cases("diff", "before", "after")
def test_a_diff_changes_only_its_named_lines(diff: str, before: str, after: str | None) -> None:
    (hunks,) = parse(diff, 1).values()
    if after is None:
        with pytest.raises(ValueError, match="hunk 1 does not fit"):
            applied(before, hunks)
    else:
        assert applied(before, hunks) == after


@cases("diff")
def test_an_invalid_diff_or_a_path_out_of_the_folder_is_refused(diff: str) -> None:
    with pytest.raises(ValueError, match=r"line \d|hunk"):
        parse(diff, 1)


def _run(folder: Path, mode: str, *every: object) -> tuple[int, str, str]:
    """Run the program as a container does, without other files in its folder."""
    (folder / "steps.py").write_bytes(Path(steps.__file__).read_bytes())
    (folder / "steps.json").write_text(json.dumps(every))
    arguments = [sys.executable, "-I", "-S", "-B", str(folder / "steps.py"), mode]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def _members(layer: str, image: Path) -> list[tuple[object, ...]]:
    """Members of a layer.

    Other programs change /tmp meanwhile: directories above the image have no fixed time here.
    """
    above = {str(parent) for parent in image.parents}
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(layer))) as archive:
        return [
            (member.name, member.mode, member.size, member.uid, member.gid, member.type,
             None if f"/{member.name}" in above else member.mtime,
             file.read() if (file := member.isfile() and archive.extractfile(member)) else b"")
            for member in archive
        ]  # fmt: skip


def test_the_layer_has_the_changes_of_the_steps_in_order(tmp_path: Path) -> None:
    image = tmp_path / "image"
    (image / "pkg").mkdir(parents=True)
    (image / "pkg/x.py").write_text("a\nb\nc\n")
    (image / "pkg/x.py").chmod(0o755)
    (tmp_path / "one").write_text(DIFF)
    (tmp_path / "two").write_text(DIFF.replace("-b", "-B").replace("+B", "+C"))
    (tmp_path / "new").write_text("{}")
    patch = {name: {"file": name, "into": str(image), "strip": 1} for name in ("one", "two")}
    every = {"patch": patch}, {"files": {f"{image}/etc/new.json": "new"}}
    code, out, errors = _run(tmp_path, "apply", *every)
    assert (code, errors) == (0, "")
    assert _members(_run(tmp_path, "apply", *every)[1], image) == _members(out, image)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(out))) as layer:
        listed = {f"/{entry.name}": entry for entry in layer}
        folders = {path: entry for path, entry in listed.items() if entry.isdir()}
        assert folders[f"{image}/pkg"].mtime == int((image / "pkg").stat().st_mtime)
        assert folders[f"{image}/etc"].mtime == 0
        assert listed.pop("/usr/share/sparkwright/steps.json")
        entries = {path: entry for path, entry in listed.items() if path not in folders}
        texts = {path: layer.extractfile(entry) for path, entry in entries.items()}
        assert {path: file and file.read() for path, file in texts.items()} == {
            f"{image}/etc/new.json": b"{}",
            f"{image}/pkg/x.py": b"a\nC\nc\n",
        }
    assert [entry.mode for entry in entries.values()] == [0o644, 0o755]
    assert (image / "pkg/x.py").read_text() == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("diff", "before", "copied", "options", "result"),
    [
        (DIFF, "a\nB\nc\n", None, {"reverse": True}, b"a\nb\nc\n"),
        (DIFF, "a\nB\nc\n", None, {"optional": True}, None),
        # Lines that end with CR LF, in the diff and in the image.
        (f"{HEAD}@@ -1 +1 @@\n-b\r\n+c\r\n", "b\r\n", None, {}, b"c\r\n"),
        # The patch applies to the empty file of an earlier step, not to the file of the image.
        (f"{HEAD}@@ -0,0 +1 @@\n+new\n", "there\n", "", {}, b"new\n"),
    ],
)
def test_a_patch_changes_the_file_or_is_left_out(
    tmp_path: Path,
    diff: str,
    before: str,
    copied: str | None,
    options: dict[str, bool],
    result: bytes | None,
) -> None:
    (tmp_path / "x.py").write_bytes(before.encode())
    (tmp_path / "one").write_bytes(diff.encode())
    (tmp_path / "copied").write_text(copied or "")
    patch = {"fix.patch": {"file": "one", "into": str(tmp_path), "strip": 2, **options}}
    copy = [{"files": {f"{tmp_path}/x.py": "copied"}}] if copied is not None else []
    code, out, errors = _run(tmp_path, "apply", *copy, {"patch": patch})
    assert (code, errors) == (0, "")
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(out))) as layer:
        files = [layer.extractfile(entry) for entry in layer if not entry.isdir()]
    assert [file.read() for file in files if file][:-1] == ([result] if result else [])


@cases("path", "diff", "options", "fault")
def test_a_patch_that_does_not_apply_is_named_with_its_file(
    tmp_path: Path, path: str, diff: str, options: dict[str, bool], fault: str
) -> None:
    into = tmp_path / "into"
    into.mkdir()
    (into / "lnk").symlink_to(tmp_path)
    (into / "new.py").write_text("new\n")
    (into / "x.py").write_text("other\n")
    (tmp_path / "z.py").write_text("a\nb\nc\n")
    (tmp_path / "one").write_text(diff.replace("b/pkg/x.py", f"b/pkg/{path}"))
    patch = {"fix.patch": {"file": "one", "into": str(into), "strip": 2, **options}}
    code, _, errors = _run(tmp_path, "apply", {"patch": patch})
    assert code == 1
    assert fault.format(into=into) in errors
    assert "Traceback" not in errors


@cases("promises", "fault")
def test_a_broken_promise_is_reported_in_one_line(
    tmp_path: Path, promises: dict[str, object], fault: str | None
) -> None:
    text = json.dumps(promises).replace("$FILE", f"{tmp_path}/steps.py")
    code, _, errors = _run(tmp_path, "check", {"promises": json.loads(text)})
    assert code == (fault is not None)
    assert (fault or "") in errors
    assert len(errors.splitlines()) == code
