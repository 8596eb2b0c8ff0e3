"""`python3 -m lab.gpu.receive FOLDER`: reads parts, and unpacks complete archives.

Parts are pieces of one stream of archives, in order; `contents.json` beside the first part has
their sizes. An archive is unpacked in the background as soon as its last byte has arrived. The
standard library of Python 3.10 is enough.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from lab.gpu.layout import HOME

_UNPACK = (
    "mkdir -p {home}/{name} && head -c {size} | xz -dcT0 | tar -xp -C {home}/{name} "
    "&& touch {home}/.{name}.done"
)


def receive(folder: Path, home: Path = HOME) -> list[str]:
    """Append a folder's parts to the stream; return the archives that are being unpacked."""
    home.mkdir(parents=True, exist_ok=True)
    stream, contents = home / "stream", home / "contents.json"
    if (folder / contents.name).exists():
        shutil.copy(folder / contents.name, contents)
    expected = json.loads(contents.read_text())
    for part in sorted(folder.glob("part-*")):
        number = int(part.name.removeprefix("part-"))
        before = stream.stat().st_size if stream.exists() else 0
        if before != number * expected["part_bytes"]:
            raise SystemExit(f"{part.name}: {before} bytes are here, which is not its place")
        with stream.open("ab") as target, part.open("rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
    there, start, begun = stream.stat().st_size, 0, []
    for archive in expected["archives"]:
        mark = home / f".{archive['name']}.begun"
        if start + archive["size"] <= there and not mark.exists():
            mark.touch()
            with stream.open("rb") as source:
                source.seek(start)
                # The process that unpacks has its own session: it outlives the call that brought
                # the part.
                command = ["bash", "-o", "pipefail", "-c", _UNPACK.format(home=home, **archive)]
                log = (home / f"{archive['name']}.log").open("w")
                subprocess.Popen(command, start_new_session=True, stdin=source,
                                 stdout=subprocess.DEVNULL, stderr=log)  # fmt: skip
            begun.append(archive["name"])
        start += archive["size"]
    return begun


if __name__ == "__main__":
    print("unpacking", *receive(Path(sys.argv[1])))
