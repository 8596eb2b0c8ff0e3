"""Picture recognition of the fake: plain shapes, their colours, and a word in dots.

The fake runs no model. The fake decodes a PNG and measures shapes in flat colours on white, so an
answer about a picture is right, as from a real model, and an incomplete picture is detected.
"""

import base64
import struct
import zlib
from typing import Any

from .errors import bad_request

_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Bytes of a pixel by PNG's colour type, for 8 bits a channel."""
_COLOURS = {
    "red": (255, 0, 0), "green": (0, 160, 0), "blue": (0, 0, 255), "yellow": (255, 220, 0),
    "orange": (255, 140, 0), "purple": (140, 0, 160),
}  # fmt: skip
_ROWS = 7
_COLUMNS = 5
_LETTERS = {
    # Letters of 5 x 7 dots, row by row from the top, a hexadecimal number per row.
    "0e11111f111111": "A", "0e11101010110e": "C", "1e11111111111e": "D", "1f10101e10101f": "E",
    "0e11101711110e": "G", "1111111f111111": "H", "0e04040404040e": "I", "1010101010101f": "L",
    "111b1515111111": "M", "11191513111111": "N", "0e11111111110e": "O", "1e11111e101010": "P",
    "1e11111e141211": "R", "0f10100e01011e": "S", "1f040404040404": "T", "11111111110a04": "V",
    "11111115151b11": "W",
}  # fmt: skip

_Pixel = tuple[int, int, int]
_Point = tuple[int, int]


def pictures_of(message: dict[str, Any]) -> list[str]:
    """The addresses of a message's pictures."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [
        str(part["image_url"]["url"])
        for part in parts
        if isinstance(part, dict)
        and part.get("type") == "image_url"
        and isinstance(part.get("image_url"), dict)
    ]


def described(address: str) -> str:
    """A sentence about the picture of a `data:` URL; ApiError for an unreadable picture."""
    try:
        rows = _decode(base64.b64decode(address.partition(",")[2], validate=True))
    except (ValueError, struct.error, zlib.error, KeyError, IndexError):
        raise bad_request("cannot identify image file") from None
    coloured: dict[_Pixel, list[_Point]] = {}
    for y, row in enumerate(rows):
        for x, pixel in enumerate(row):
            if pixel != (255, 255, 255):
                coloured.setdefault(pixel, []).append((x, y))
    ink = coloured.pop((0, 0, 0), [])
    shapes = sorted((min(points), colour, points) for colour, points in coloured.items())
    seen = [f"a {_colour(colour)} {_shape(points)}" for _, colour, points in shapes]
    word = _word(ink)
    return f"I see {' and '.join(seen) or 'nothing'}{f', and the word {word}' if word else ''}."


def _decode(data: bytes) -> list[list[_Pixel]]:
    """The pixels of a PNG of 8 bits a channel without interlacing; greys are made colours."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, packed = 8, b""
    width = height = channels = 0
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        if zlib.crc32(kind + body) != check:
            raise ValueError("a chunk is damaged")
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            if depth != 8 or interlace:
                raise ValueError("another kind of PNG")
            channels = _CHANNELS[colour]
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    return _unfiltered(zlib.decompress(packed), width, height, channels)


def _unfiltered(raw: bytes, width: int, height: int, channels: int) -> list[list[_Pixel]]:
    stride = width * channels
    above = bytearray(stride)
    rows: list[list[_Pixel]] = []
    for number in range(height):
        start = number * (stride + 1)
        line = bytearray(raw[start + 1 : start + 1 + stride])
        if len(line) != stride:
            raise ValueError("rows are missing")
        _undo(raw[start], line, above, channels)
        rows.append([_rgb(line[x : x + channels]) for x in range(0, stride, channels)])
        above = line
    return rows


def _undo(kind: int, line: bytearray, above: bytearray, channels: int) -> None:
    """Undo one row's filter, by PNG's section 9: none, sub, up, average, Paeth."""
    if kind == 0:
        return
    for at in range(len(line)):
        left = line[at - channels] if at >= channels else 0
        corner = above[at - channels] if at >= channels else 0
        up = above[at]
        if kind == 4:
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda value: abs(guess - value))
            line[at] = (line[at] + nearest) & 255
        else:
            line[at] = (line[at] + {1: left, 2: up, 3: (left + up) // 2}[kind]) & 255


def _rgb(channels: bytearray) -> _Pixel:
    grey = len(channels) < 3
    return (channels[0], channels[0 if grey else 1], channels[0 if grey else 2])


def _colour(pixel: _Pixel) -> str:
    def distance(name: str) -> int:
        return sum((a - b) ** 2 for a, b in zip(pixel, _COLOURS[name], strict=True))

    return min(_COLOURS, key=distance)


def _shape(points: list[_Point]) -> str:
    """Share of a shape's bounding box that the shape fills: square 1, circle pi/4, triangle 1/2."""
    left, top, right, bottom = _box(points)
    filled = len(points) / ((right - left + 1) * (bottom - top + 1))
    return "square" if filled > 0.9 else "circle" if filled > 0.65 else "triangle"


def _box(points: list[_Point]) -> tuple[int, int, int, int]:
    across, down = [x for x, _ in points], [y for _, y in points]
    return min(across), min(down), max(across), max(down)


def _word(ink: list[_Point]) -> str:
    """Letters of 5 x 7 dots in one line, one dot apart; an unknown letter is a `?`."""
    if not ink:
        return ""
    left, top, right, bottom = _box(ink)
    dot = (bottom - top + 1) // _ROWS
    if dot == 0:
        return ""
    dots = {((x - left) // dot, (y - top) // dot) for x, y in ink}
    columns = (right - left + 1) // dot
    # Narrow letters at an end would shift the grid: the word has the width of whole letters.
    letters = (columns + _COLUMNS) // (_COLUMNS + 1)
    word = ""
    for number in range(letters):
        code = ""
        for row in range(_ROWS):
            bits = 0
            for column in range(_COLUMNS):
                bits = bits << 1 | ((number * (_COLUMNS + 1) + column, row) in dots)
            code += f"{bits:02x}"
        word += _LETTERS.get(code, "?")
    return word
