"""The core without extras, and with all extras except one: no module imports an extra by name."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = sorted(path.parent.name for path in (ROOT / "sparkwright/extras").glob("*/__init__.py"))
#: Seconds that one of the programs below may take.
_LONGEST = 240
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".*_cache", "__pycache__", "dist", ".sparkwright"
)


def without(folder: Path, names: Iterable[str]) -> Path:
    """A copy of the tree without these extras and their tests."""
    copy = folder / "tree"
    shutil.copytree(ROOT, copy, ignore=_LEFT_OUT, symlinks=True)
    for name in names:
        shutil.rmtree(copy / "sparkwright/extras" / name)
        for level in ("unit", "host"):
            shutil.rmtree(copy / "tests" / level / "extras" / name, ignore_errors=True)
    return copy


def succeeds(copy: Path, *arguments: str) -> None:
    """Run a program of this environment in the copy."""
    program = Path(sys.executable).with_name(arguments[0])
    done = subprocess.run(
        [program, *arguments[1:]], cwd=copy, capture_output=True, text=True, timeout=_LONGEST,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"


def is_whole(copy: Path) -> None:
    """The checks of imports and types and the tests of the commands pass."""
    succeeds(copy, "lint-imports")
    succeeds(copy, "mypy", "-p", "sparkwright", "-p", "roles")
    succeeds(copy, "python", "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider",
             "tests/unit/bootstrap", "tests/unit/config", "tests/unit/results",
             "tests/unit/site", "tests/unit/extras")  # fmt: skip
    succeeds(copy, "python", "-m", "pytest", "-q", "--collect-only", "tests/unit",
             "--ignore=tests/unit/docs")  # fmt: skip


@pytest.mark.timeout(4 * _LONGEST)
def test_the_core_works_without_any_extra(tmp_path: Path) -> None:
    is_whole(without(tmp_path, EXTRAS))


@pytest.mark.faults
@pytest.mark.timeout(4 * _LONGEST)
@pytest.mark.parametrize("name", EXTRAS)
def test_the_other_extras_work_without_an_extra(name: str, tmp_path: Path) -> None:
    is_whole(without(tmp_path, [name]))
