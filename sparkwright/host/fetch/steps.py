"""Steps of a derived image: unified diffs, and the program that a container of the image runs.

The container needs only the image's own Python: `python3 -B steps.py apply|check`, beside
steps.json and the files that the steps name.
"""

# An image may have an older Python than hosts, where X | None is invalid.
from __future__ import annotations

import base64
import hashlib
import importlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

#: Index of the first old line, and the lines with their marks.
Hunk = tuple[int, "list[str]"]
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_RECORD = Path("/usr/share/sparkwright/steps.json")
#: Marks of a diff's lines -> marks of the reversed diff.
_BACK = {"+": "-", "-": "+", " ": " "}
#: Headers of changes that hunks can't express.
_OTHERS = (
    "rename ",
    "copy ",
    "deleted ",
    "old mode ",
    "new file mode 12",
    "GIT binary",
    "Binary files",
)


class LeadsOut(Exception):
    """A diff follows a link out of the image's folder; even an optional diff is then refused."""


def parse(text: str, strip: int, reverse: bool = False) -> dict[str, list[Hunk]]:
    """Read a unified diff: path below the diff's folder -> hunks, in order.

    Args:
        reverse: whether to apply the diff in reverse.

    Raises:
        ValueError: the message names the line. The text is not a diff, or the diff removes or
            renames a file, adds a file in reverse, leads out of its folder, or has headers that end
            with CR LF.
    """
    files: dict[str, list[Hunk]] = {}
    hunks: list[Hunk] = []
    old = new = 0  # remaining lines of the hunk
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        mark, start = line[:1] or " ", _HUNK.match(line)
        if mark == "\\" and hunks and hunks[-1][1]:
            hunks[-1][1][-1] = hunks[-1][1][-1].removesuffix("\n")
        elif old or new:
            old, new = old - (mark != "+"), new - (mark != "-")
            if mark not in " -+" or min(old, new) < 0:
                raise ValueError(f"line {number} is not a line of its hunk")
            hunks[-1][1].append(f"{mark}{line[1:]}\n")
        elif line.startswith("+++ "):
            if line.endswith("\r"):
                raise ValueError(f"line {number} ends with CR LF; save the diff with LF")
            path = line[4:].partition("\t")[0].split("/")
            if {"", ".", ".."} & {*path} or not path[strip:]:
                raise ValueError(f"line {number} does not lead to a file below 'into'")
            hunks = files.setdefault("/".join(path[strip:]), [])
        elif start and reverse and start[1] == "0":
            raise ValueError(f"line {number} in reverse would remove a file, which steps can't do")
        elif start and files:
            old, new = int(start[2] or 1), int(start[3] or 1)
            hunks.append((int(start[1]) - (old > 0), []))
        elif start or line.startswith(_OTHERS):
            raise ValueError(f"line {number} is not a change of a text file")
    if old or new or not files or not all(files.values()):
        raise ValueError("the diff has no hunk, or ends within a hunk")
    return files


def applied(text: str, hunks: list[Hunk]) -> str:
    """Return the text after a file's hunks. Raises ValueError with the number of a hunk that does
    not fit.
    """
    lines, shift, least = re.findall(r"[^\n]*\n|[^\n]+", text), 0, 0
    for number, (start, marked) in enumerate(hunks, 1):
        old, new = ([line[1:] for line in marked if line[0] != other] for other in "+-")
        ends = range(least, len(lines) - len(old) + 1)
        fits = [(abs(at - start - shift), at) for at in ends if lines[at : at + len(old)] == old]
        # A hunk without context lines would fit anywhere.
        if not fits or (lines and not old):
            raise ValueError(f"hunk {number} does not fit: the image has other lines")
        at = min(fits)[1]
        lines[at : at + len(old)] = new
        least, shift = at + len(new), at - start + len(new) - len(old)
    return "".join(lines)


def _patched(
    folder: Path, patch: dict[str, Any], files: dict[Path, bytes]
) -> Iterator[tuple[Path, bytes]]:
    # Read bytes: read_text would turn CR LF into LF, and the image's lines are compared unchanged.
    text, reverse = (folder / patch["file"]).read_bytes().decode(), patch.get("reverse", False)
    into = Path(patch["into"]).resolve()
    for name, hunks in parse(text, patch["strip"], reverse).items():
        path = Path(into, name).resolve()
        if not path.is_relative_to(into):
            raise LeadsOut(
                f"{into}/{name} is a link of the image to {path}, which is outside of 'into'"
            )
        if reverse:
            hunks = [(at, [f"{_BACK[line[0]]}{line[1:]}" for line in lines]) for at, lines in hunks]
        added = not path.exists() and hunks[0][0] == 0
        before = files.get(path)  # an earlier step may have copied an empty file
        if before is None:
            before = b"" if added else path.read_bytes()
        try:
            yield path, applied(before.decode(), hunks).encode()
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def layer(folder: Path, steps: list[dict[str, dict[str, Any]]]) -> bytes:
    """Return a tar of the files that steps change in the image. The same changes give the same
    bytes.

    Raises:
        ValueError: a diff does not apply; the message has the file and the hunk.
    """
    # Write a record of the steps into the image, so that a layer is never empty.
    files = {_RECORD: (folder / "steps.json").read_bytes()}
    for step in steps:
        for at, name in step.get("files", {}).items():
            files[Path(at).resolve()] = (folder / name).read_bytes()
        for source, patch in step.get("patch", {}).items():
            try:
                files |= dict(_patched(folder, patch, files))
            except (OSError, ValueError) as error:
                if not patch.get("optional"):
                    raise ValueError(f"{source}: {error}") from None
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        # Include the folders unchanged: otherwise Docker would set their times to the time of the
        # build.
        folders = {folder for path in files for folder in path.parents[:-1]}
        for path in sorted({*files, *folders}):
            content, entry = files.get(path), tarfile.TarInfo(str(path)[1:])
            entry.mode, entry.size = 0o755 if content is None else 0o644, len(content or b"")
            entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            if path.exists():
                there = path.stat()
                entry.mode = there.st_mode & 0o7777
                entry.uid, entry.gid = there.st_uid, there.st_gid
                entry.mtime = int(there.st_mtime) if content is None else 0
            archive.addfile(entry, io.BytesIO(content or b""))
    return made.getvalue()


def check(imports: Sequence[str] = (), **values: dict[str, str]) -> None:
    """Check an image's imports, versions and sha256 sums.

    Raises ValueError, or the exception of an import.
    """
    for name in imports:
        importlib.import_module(name)
    for kind, wanted in values.items():
        for name, value in wanted.items():
            content = Path(name).read_bytes if kind == "sha256" else None
            there = hashlib.sha256(content()).hexdigest() if content else metadata.version(name)
            if there != value:
                raise ValueError(f"broken promise, {kind} of {name} is {there}, not {value}")


def main(mode: str) -> str | None:
    """Print the layer in base64, or run every check. Returns the faults in one line."""
    folder = Path(__file__).parent
    try:
        steps = json.loads((folder / "steps.json").read_text("utf-8"))
        if mode == "apply":
            print(base64.b64encode(layer(folder, steps)).decode())
        for step in steps if mode == "check" else ():
            check(**step.get("promises", {}))
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
