"""The pages, split for checks: links, headings, code lines and code spans."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(
    path for pattern in ("*.md", "docs/*.md", "catalog/*.md") for path in ROOT.glob(pattern)
)
NAMES = [str(path.relative_to(ROOT)) for path in FILES]


@dataclass(frozen=True)
class Page:
    """A page, taken apart.

    Attributes:
        text: the whole text.
        prose: the text without code blocks, but with code spans.
        code: lines of code blocks, without blocks of Python, YAML and plain text.
    """

    text: str
    prose: str
    code: tuple[str, ...]

    @property
    def links(self) -> list[str]:
        """Targets of links and images."""
        return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", self.prose))

    @property
    def spans(self) -> list[str]:
        """Text of code spans; a span over several lines is joined."""
        matches = re.findall(r"`([^`]+)`", self.prose)
        return [" ".join(span.replace("\\|", "|").split()) for span in matches]

    @property
    def anchors(self) -> set[str]:
        """Anchors behind ``#`` in links, as GitHub makes them of headings."""
        result = set(re.findall(r'<a id="([^"]+)"', self.prose))
        seen: Counter[str] = Counter()
        for heading in re.findall(r"^#+ (.*)$", self.prose, re.M):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            result.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return result


def page(text: str) -> Page:
    """Split a page."""
    prose: list[str] = []
    code: list[str] = []
    fence: str | None = None
    indented, blank = False, True
    for line in text.splitlines():
        mark = line.strip()
        if mark.startswith("```"):
            fence = None if fence is not None else mark[3:]
        elif fence is not None:
            if fence not in ("python", "yaml", "text"):
                code.append(line.strip())
        elif line.startswith("    ") and (indented or blank):
            indented = True
            code.append(line.strip())
        else:
            indented = indented and not mark
            prose.append(line)
        blank = not mark
    return Page(text, "\n".join(prose), tuple(_joined(code)))


def _joined(lines: list[str]) -> list[str]:
    """Lines, with a line that ends with a backslash joined to the next line."""
    return "\n".join(lines).replace("\\\n", " ").split("\n")


def read(name: str) -> Page:
    """A page of this repository."""
    return page((ROOT / name).read_text(encoding="utf-8"))
