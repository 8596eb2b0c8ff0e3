"""A site of a few files, and a command run in it: checked for rules of every command."""

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from sparkwright.cli import main

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "qwen36-35b-a3b-heretic-dflash"
#: A catalog of one recipe, since reading the shipped catalog takes most of a command's time.
CATALOG = (
    f"recipes/{RECIPE}.yaml",
    "images/aeon-vllm-ultimate.yaml",
    "models/qwen36-35b-a3b-heretic-nvfp4.yaml",
    "models/qwen36-35b-a3b-dflash.yaml",
)
INVENTORY = 'sparks = ["spark-1", "spark-2"]\n'
GROUP_DATA = f'services = {{"qwen36": {{"recipe": "{RECIPE}"}}}}\n'
#: Seconds of processor time and of waiting that no tested command exceeds, for any input.
LONGEST, PATIENCE = 5.0, 10.0


def catalog(folder: Path) -> Path:
    """The small catalog, made once."""
    for path in CATALOG:
        position = folder / path
        position.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "catalog" / path, position)
    return folder


@contextmanager
def site(folder: Path, files: Mapping[str, str | bytes]) -> Iterator[Path]:
    """A site with these files over a valid site, as the working directory; removed afterwards."""
    whole = {"inventory/lab.py": INVENTORY, "group_data/all.py": GROUP_DATA, **files}
    position, home, before = folder / "site", folder / "home", Path.cwd()
    for path, text in whole.items():
        target = position / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else _bytes(text))
    home.mkdir()
    os.chdir(position)
    try:
        yield position
    finally:
        os.chdir(before)
        shutil.rmtree(position)
        shutil.rmtree(home)


def run(folder: Path, *arguments: str, outputs: Iterable[str] = ()) -> Result:
    """Run a command in a site, and assert the rules of every command.

    Args:
        outputs: paths of the site that the command may write.
    """
    before = contents(folder.parent)
    began, waiting = time.process_time(), time.monotonic()
    result = CliRunner().invoke(
        main, list(arguments), prog_name="sparkwright", env={"HOME": str(folder.parent / "home")}
    )
    took, waited = time.process_time() - began, time.monotonic() - waiting
    message = f"{arguments}: {result.output[-2000:]}"
    if not (result.exception is None or isinstance(result.exception, SystemExit)):
        raise AssertionError(message) from result.exception
    assert result.exit_code in {0, 1, 2, 130}, (result.exit_code, message)
    assert "Traceback" not in result.output, message
    assert took < LONGEST, (took, message)
    assert waited < PATIENCE, (waited, message)
    after = contents(folder.parent)
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    allowed = tuple(Path("site", output).as_posix() for output in outputs)
    stray = {
        item for item in changed if item not in allowed and not item.startswith(_below(allowed))
    }
    assert not stray, (stray, message)
    return result


def _below(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{path}/" for path in paths)


def contents(folder: Path) -> dict[str, str]:
    """Every path below a folder -> its content."""
    result = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not path.is_symlink():
            result[name] = (
                f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            )
        else:
            result[name] = f"{path.lstat().st_mode:o}"
    return result


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
