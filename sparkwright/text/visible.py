"""Escape text from hosts, so that it can't control a terminal or mislead a reader.

A host's text may contain escape sequences (which move the cursor, set the window's title, write to
the clipboard), a carriage return that hides the text before it, or marks that turn the direction of
a line. Each of these characters is shown as its escape: ``\\x1b``, ``\\u202e``.
"""

import re

#: Unicode's control and format characters, Unicode's separators of lines and paragraphs, halves of
#: surrogate pairs, which can't be sent to a terminal, and invisible letters.
_CLASS = (
    r"\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff"
    r"\ufeff\uffa0\ufff9-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_UNSAFE = re.compile(f"[{_CLASS}]")
_UNSAFE_BUT_LINES = re.compile(f"(?!\n)[{_CLASS}]")
#: click's sequences for colours; no sequence that hides text or moves the cursor.
_COLOUR = re.compile(r"(\x1b\[(?:[0-2]|3[0-7]|9[0-7])m)")
_PAINT = re.compile(r"\x1b\[[0-9;:]*[mABCDGHJK]")
#: Largest number of characters of a host's message; longer messages are cut.
LONGEST = 2000
#: Characters that prose and code need, and that control no terminal: a tab, and joiners of letters
#: and emoji.
_PROSE = re.compile("([\t\u200c\u200d])")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, longest: int = LONGEST) -> str:
    """Return the text on one line, cut to ``longest``, with control sequences escaped."""
    return _UNSAFE.sub(_escape, cut(text, longest))


def log_line(text: str) -> str:
    """Return a program's logged line without colours and without the cursor movements of progress
    bars; other control sequences are escaped.
    """
    return visible(_PAINT.sub("", text.expandtabs(4)), 4000)


def paragraph(text: str, indent: str = "    ") -> str:
    """Indent a program's logged lines after the first line, so that no line looks like
    a line of sparkwright.
    """
    first, *rest = text.split("\n")
    return "\n".join([visible(first), *(f"{indent}{visible(line.strip())}" for line in rest)])


def cut(text: str, longest: int) -> str:
    """Return a text's beginning, and the size of the rest."""
    more = len(text) - longest
    return text if more <= 0 else f"{text[:longest]}… ({more} characters more)"


def visible_text(text: str) -> str:
    """Escape a text of any length except its line breaks, for a page."""
    return _UNSAFE_BUT_LINES.sub(_escape, text)


def visible_prose(text: str) -> str:
    """Escape a model's answer, except tabs and joiners of letters, which belong to the text."""
    parts = _PROSE.split(text)
    parts[::2] = map(visible_text, parts[::2])
    return "".join(parts)


def visible_but_colours(text: str) -> str:
    """Escape lines, except sparkwright's own colours."""
    parts = _COLOUR.split(text)
    parts[::2] = map(visible_text, parts[::2])
    return "".join(parts)


def visible_json(document: str) -> str:
    """Return JSON with its line breaks, and with unsafe characters as JSON's escapes."""
    return _UNSAFE_BUT_LINES.sub(_json_escape, document)


def _escape(match: re.Match[str]) -> str:
    result, number = match[0], ord(match[0])
    if result in _NAMED:
        return _NAMED[result]
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
