"""The check of vision, and its picture: two coloured shapes and a word, as PNG.

Each check draws a new picture, so that no answer can be known beforehand. The module uses only zlib
and struct, so a host needs no image library.
"""

import base64
import random
import re
import struct
import zlib

from sparkwright.host.lib.faults import clip, fail_if, fail_if_only_marks
from sparkwright.host.lib.records import dataclass
from sparkwright.host.smoke.client import DeepClient

SIZE = 448
"""Pixels per side: several patches of every vision tower, in a file of a few kB."""
COLOURS = {"red": (220, 20, 20), "green": (20, 160, 40), "blue": (30, 60, 220)}
SHAPES = ("circle", "square", "triangle")
WORDS = ("LAMP", "RIVER", "STONE", "COPPER", "GARDEN", "WINTER", "PEPPER", "VELVET", "ANCHOR")
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_RADIUS = 80
_DOT = 10
"""Pixels of a dot of the font, which has 5 x 7 dots and one dot between letters."""

#: A row of five dots per number, from the top; the highest of five bits is the leftmost dot.
FONT = {
    "A": (14, 17, 17, 31, 17, 17, 17), "C": (14, 17, 16, 16, 16, 17, 14),
    "D": (30, 17, 17, 17, 17, 17, 30), "E": (31, 16, 16, 30, 16, 16, 31),
    "G": (14, 17, 16, 23, 17, 17, 14), "H": (17, 17, 17, 31, 17, 17, 17),
    "I": (14, 4, 4, 4, 4, 4, 14), "L": (16, 16, 16, 16, 16, 16, 31),
    "M": (17, 27, 21, 21, 17, 17, 17), "N": (17, 25, 21, 19, 17, 17, 17),
    "O": (14, 17, 17, 17, 17, 17, 14), "P": (30, 17, 17, 30, 16, 16, 16),
    "R": (30, 17, 17, 30, 20, 18, 17), "S": (15, 16, 16, 14, 1, 1, 30),
    "T": (31, 4, 4, 4, 4, 4, 4), "V": (17, 17, 17, 17, 17, 10, 4),
    "W": (17, 17, 17, 21, 21, 27, 17),
}  # fmt: skip

_QUESTION = (
    "Look at the picture. Which two shapes are in it, in which colours, and which word is "
    "written below them? Name shapes, colours and word in one sentence."
)
_Pixel = tuple[int, int, int]


@dataclass(frozen=True)
class Picture:
    """Contents of a picture: (colour, shape) on the left and on the right, and a word below."""

    left: tuple[str, str]
    right: tuple[str, str]
    word: str

    @property
    def facts(self) -> tuple[str, ...]:
        """Return the words that an answer about the picture must have."""
        return (*self.left, *self.right, self.word.lower())

    def __str__(self) -> str:
        return f"a {' '.join(self.left)}, a {' '.join(self.right)} and the word {self.word}"

    def data_url(self) -> str:
        """Return the picture as ``data:image/png;base64,...``."""
        return f"data:image/png;base64,{base64.b64encode(png(self.rows())).decode()}"

    def rows(self) -> list[list[_Pixel]]:
        """Return the pixels, row by row."""
        rows = [[_WHITE] * SIZE for _ in range(SIZE)]
        for (colour, shape), centre in ((self.left, SIZE // 4), (self.right, 3 * SIZE // 4)):
            for y in range(-_RADIUS, _RADIUS):
                for x in range(-_RADIUS, _RADIUS):
                    if _inside(shape, x, y):
                        rows[SIZE // 3 + y][centre + x] = COLOURS[colour]
        left = (SIZE - _DOT * (6 * len(self.word) - 1)) // 2
        for number, letter in enumerate(self.word):
            _write(rows, FONT[letter], left + number * 6 * _DOT, 320)
        return rows


def image(client: DeepClient) -> str:
    """Check that the model names shapes, colours and the word; one of five facts may be wrong."""
    picture = drawn()
    content = [
        {"type": "image_url", "image_url": {"url": picture.data_url()}},
        {"type": "text", "text": _QUESTION},
    ]
    body = client.body([{"role": "user", "content": content}], 128)
    answer = client.chat(body)
    fail_if_only_marks(answer.text or "", "the answer to a picture")
    if answer.only_reasoning:
        answer = client.ask(body["messages"], 128)
    matches = re.findall(r"\w+", (answer.text or "").lower())
    named = [fact for fact in picture.facts if fact in matches]
    unseen = len(named) < len(picture.facts) - 1
    fail_if(unseen, "unseen", f"the picture has {picture}; the answer is {clip(answer.text)!r}")
    return f"named {len(named)} of {len(picture.facts)} facts: {picture}{answer.note}"


def drawn() -> Picture:
    """Return a random picture with different colours and different shapes."""
    chance = random.SystemRandom()
    colours, shapes = chance.sample(sorted(COLOURS), 2), chance.sample(SHAPES, 2)
    left, right = zip(colours, shapes, strict=True)
    return Picture(left, right, chance.choice(WORDS))


def png(rows: list[list[_Pixel]]) -> bytes:
    """Encode rows of pixels as a PNG of 8-bit RGB without filters."""
    raw = b"".join(b"\0" + bytes(part for pixel in row for part in pixel) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def _inside(shape: str, x: int, y: int) -> bool:
    """Return whether a point, relative to the centre, is in a shape."""
    if shape == "circle":
        return x * x + y * y < _RADIUS * _RADIUS
    # A triangle on its base: its width equals the distance from the tip.
    return shape == "square" or 2 * abs(x) <= y + _RADIUS


def _write(rows: list[list[_Pixel]], glyph: tuple[int, ...], left: int, top: int) -> None:
    for row, bits in enumerate(glyph):
        for column in range(5):
            if bits >> (4 - column) & 1:
                for y in range(top + row * _DOT, top + (row + 1) * _DOT):
                    start = left + column * _DOT
                    rows[y][start : start + _DOT] = [_BLACK] * _DOT
