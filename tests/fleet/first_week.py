"""A page as blocks of shell commands, each with a comment that controls its test."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.site import ROOT

PAGE = ROOT / "docs/first-week.md"
_BLOCK = re.compile(r"(?:<!-- test: (?P<test>.*?) -->\n)?```sh\n(?P<code>.*?)```\n", re.S)
_WORDS = {
    "says": r"says (.+)",
    "code": r"ends with (\d)",
    "before": r"(off \S+|on \S+|internet \w+)",
    "after": r"then (.+)",
}


@dataclass(frozen=True)
class Block:
    """A block of the page.

    Attributes:
        title: title of the section, with the block's number in the section.
        before: action before the block, such as ``off rtx-1``.
        says: text that the output must contain.
        after: the test's action after the block, such as ``lab``.
    """

    title: str
    code: str
    before: str = ""
    says: str = ""
    ends_with: int = 0
    after: str = ""


def blocks(page: str) -> list[Block]:
    """Every block of shell, in order.

    Raises:
        ValueError: the comment has no known action.
    """
    result = []
    for title, section in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.S | re.M):
        for number, match in enumerate(_BLOCK.finditer(section), 1):
            texts: dict[str, str] = {}
            for part in filter(None, (match["test"] or "").split("; ")):
                expected = [(key, re.fullmatch(form, part)) for key, form in _WORDS.items()]
                hits = [(key, hit[1]) for key, hit in expected if hit]
                if not hits:
                    raise ValueError(f"{title}: {part!r} means nothing to the test")
                texts.update(hits)
            result.append(
                Block(
                    f"{title}, block {number}", match["code"], texts.get("before", ""),
                    texts.get("says", ""), int(texts.get("code", 0)), texts.get("after", ""),
                )
            )  # fmt: skip
    return result


def tasks() -> str:
    """The ten tasks of docs/fleet.md, each in its own section."""
    text = (ROOT / "docs/fleet.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition("\n## Ten tasks\n")[2], flags=re.M)[0]
    return re.sub(r"^### ", "## ", section, flags=re.M)


class Shell:
    """User's shell, which keeps its folder and environment from block to block."""

    def __init__(self, home: Path, state: Path) -> None:
        self._state = state
        state.write_text(f"cd {home}\n")

    @property
    def folder(self) -> Path:
        """Folder in which the last block ended."""
        return Path(self._state.read_text().splitlines()[0].removeprefix("cd "))

    def run(self, block: Block, seconds: float) -> str:
        """Run a block unchanged and return its output; its comment determines the exit code."""
        keep = f'{{ echo "cd $PWD"; export -p; }} > {self._state}'
        script = f". {self._state}\nset -e\ntrap '{keep}' EXIT\n{block.code}"
        environment = {"HOME": str(self._state.parent), "PATH": _PATH, "TERM": "dumb"}
        done = subprocess.run(
            ["bash", "-c", script], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds,
            check=False,
        )  # fmt: skip
        message = f"{block.title}:\n{block.code}\n{done.stdout}"
        assert "Traceback" not in done.stdout, message
        assert done.returncode == block.ends_with, message
        # "0 changes" must not match within "10 changes".
        assert re.search(rf"(?<!\w){re.escape(block.says)}", done.stdout), message
        return done.stdout


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
