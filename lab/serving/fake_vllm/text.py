"""Answers of the fake: no model's output, but the same for the same prompt.

A token is a word with the white space before it, or one punctuation mark.
"""

import hashlib
import json
import re
from typing import Any

_WORDS = re.findall(
    r"\w+",
    """lamp river stone cloud paper green quiet seven copper bridge window garden signal winter
    orange harbor metal cedar pocket engine silver mountain letter planet button candle forest
    island marble needle ocean pepper ribbon saddle timber velvet walnut yellow anchor basket""",
)

FAKE = "fake"
"""Text in JSON if the schema does not fix the text."""

_ARITHMETIC = re.compile(
    # A minus stands between spaces: a text without spaces may be a date.
    r"(-?\d{1,9})(?:\s*([+*x×·÷/])\s*|\s+(-)\s+)(-?\d{1,9})"  # noqa: RUF001
)
_ECHO = re.compile(
    r"(?:repeat|echo|say|reply with|answer with|respond with)(?: after me| exactly| only| just"
    r"| the words?)*:?\s+(.+)",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")


def tokens_of(text: str) -> list[str]:
    """Split a text into tokens, which join to the same text."""
    return _TOKEN.findall(text)


def seed_of(*parts: str) -> int:
    """A number of 128 bits that depends only on the parts."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:16], "big")


def answer_to(question: str, seed: int) -> str:
    """The answer: a computed sum, a repeated text, or words from the hash."""
    arithmetic = _ARITHMETIC.search(question)
    if arithmetic:
        left, sign, minus, right = arithmetic.groups()
        return _worked_out(left, sign or minus, right)
    echo = _ECHO.search(question)
    if echo:
        return echo.group(1).strip().strip("\"'`“”").rstrip(".")
    return "This is a fake: no model was computed. " + prose(seed, 12 + seed % 24)


def thinking_about(question: str, seed: int) -> str:
    """The reasoning before an answer."""
    start = " ".join(question.split()[:8])
    return f"The fake was asked: {start}. It takes {prose(seed >> 5, 6 + seed % 12)}"


def prose(seed: int, count: int) -> str:
    """`count` words chosen by the seed, as a sentence."""
    chosen = []
    state = seed or 1
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        chosen.append(_WORDS[(state >> 33) % len(_WORDS)])
    return " ".join(chosen) + "."


def instance_of(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """A small value that fits a JSON schema, by its usual keywords."""
    root = schema if root is None else root
    if not isinstance(schema, dict) or depth > 12:
        return None
    if isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#/"):
        target: Any = root
        for key in schema["$ref"][2:].split("/"):
            target = target.get(key, {}) if isinstance(target, dict) else {}
        return instance_of(target, root, depth + 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return instance_of(schema[key][0], root, depth + 1)
    return _plain_instance(schema, root, depth)


def _plain_instance(schema: dict[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: instance_of(part, root, depth + 1) for name, part in properties.items()}
    if kind == "array":
        item = instance_of(schema.get("items", {}), root, depth + 1)
        return [item] * max(1, int(schema.get("minItems", 1)))
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        return low if kind == "number" else int(low)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = FAKE.ljust(int(schema.get("minLength", 0)), ".")
    return text[: int(schema.get("maxLength", len(text)))]


def compact(value: Any) -> str:
    """JSON as the API writes it: without white space, with other scripts unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _worked_out(left: str, sign: str, right: str) -> str:
    first, second = int(left), int(right)
    if sign in "/÷":
        if second == 0:
            return "A number cannot be divided by zero."
        result = str(first // second) if first % second == 0 else f"{first / second:g}"
    else:
        result = str({"+": first + second, "-": first - second}.get(sign, first * second))
    return f"{left} {sign} {right} = {result}"
