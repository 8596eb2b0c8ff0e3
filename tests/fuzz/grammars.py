"""Grammars of users' input: inventories, group_data, catalog entries, locks, command lines."""

import json
import math
from typing import Any

import yaml
from hypothesis import strategies as st

from sparkwright.cli import sections
from sparkwright.config.parse import CONNECTION_KEYS
from sparkwright.config.settings import (
    AddressSettings,
    HostSettings,
    RolloutSettings,
    ServiceSettings,
)
from tests.fuzz.drawn_site import CATALOG, RECIPE, ROOT
from tests.fuzz.drawn_values import Deep, mutated, nested, numbers, python, scalars, texts
from tests.tables import Tables
from tests.unit.builders import locked, plan

_DATA = Tables(__file__).data
_MODELS = (HostSettings, ServiceSettings, RolloutSettings, AddressSettings)
#: Keys of all kinds of settings, so that some of them are valid where they are drawn.
KEYS = st.one_of(
    st.sampled_from(
        sorted({name for model in _MODELS for name in model.model_fields} | {*CONNECTION_KEYS})
        + _DATA["KEYS"]
    ),
    texts,
)
_SETTINGS: dict[str, Any] = _DATA["SETTINGS"]
#: Lines that are invalid in a file of settings.
_LINES = st.sampled_from(
    (
        *_DATA["LINES"],
        "x = " + "[" * 100_000,
        "x = " + "(" * 300,
        "x = " + "-" * 100_000 + "1",
        "x = [0 " + "for i in () " * 20_000 + "]",
        "# \udc80",
    )
)


def _file(lines: st.SearchStrategy[list[str]]) -> st.SearchStrategy[bytes]:
    """A file of these lines, sometimes in an encoding that is not allowed."""
    encoded = lines.map(lambda item: "\n".join(item).encode("utf-8", "surrogatepass"))
    odd = lines.map(lambda item: "\n".join([*item, "# é"]).encode("latin-1", "replace"))
    marked = encoded.map(lambda data: b"\xef\xbb\xbf" + data)
    wide = lines.map(lambda item: "\n".join(item).encode("utf-16", "replace"))
    return st.one_of(*[encoded] * 9, odd, marked, wide)


_assignment = st.tuples(KEYS, nested(KEYS)).map(lambda pair: f"{pair[0]} = {python(pair[1])}")
_settings = mutated(_SETTINGS, KEYS).map(
    lambda result: "\n".join(f"{key} = {python(value)}" for key, value in result.items())
)
group_data = _file(
    st.one_of(
        _settings.map(lambda text: [text]),
        st.lists(st.one_of(_assignment, _LINES), max_size=3),
        st.tuples(_settings, _LINES).map(list),
    )
)
_host = st.one_of(
    st.sampled_from(("spark-1", "@local", "10.0.0.1", "fe80::1%eth0")),
    scalars,
    st.tuples(st.just("spark-1"), nested(KEYS)),
    st.tuples(texts, mutated(_SETTINGS, KEYS)),
    st.tuples(texts, nested(KEYS), nested(KEYS)),
    st.tuples(scalars),
    st.just(()),
    st.lists(scalars, max_size=2),
)
_group = st.one_of(
    st.lists(_host, max_size=4),
    st.tuples(st.lists(_host, max_size=3), nested(KEYS)),
    st.tuples(st.lists(_host, max_size=3), mutated(_SETTINGS, KEYS)),
    st.tuples(scalars, scalars),
    nested(KEYS),
)
inventory = _file(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(("sparks", "all", "lab", "_x", "ports")), _group).map(
                lambda pair: f"{pair[0]} = {python(pair[1])}"
            ),
            _LINES,
        ),
        min_size=1,
        max_size=4,
    )
)


def as_yaml(value: Any) -> str:
    """A value as YAML in one line, of any depth."""
    if isinstance(value, Deep):
        return "[" * value.levels + "1" + "]" * value.levels
    if isinstance(value, dict):
        text = ", ".join(f"{json.dumps(str(key))}: {as_yaml(item)}" for key, item in value.items())
        return f"{{{text}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_yaml, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[str(value)]
    return json.dumps(value, default=str)


_BOMB = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
)
_YAML_LINES = st.sampled_from(
    (
        *_DATA["YAML_LINES"],
        *("f: " + "[" * 100_000, "g: " + "- " * 100_000, "h: " + "{a: " * 50_000, _BOMB),
        "j: " + "9" * 6000,
    )
)


@st.composite
def _yaml(draw: st.DrawFn, document: Any) -> bytes:
    result = draw(mutated(document, st.one_of(texts, st.sampled_from(sorted(map(str, document))))))
    lines = (
        [f"{json.dumps(str(key))}: {as_yaml(value)}" for key, value in result.items()]
        if isinstance(result, dict)
        else [as_yaml(result)]
    )
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), draw(_YAML_LINES))
    if draw(st.integers(0, 9)) == 0 and lines:
        lines.append(draw(st.sampled_from(lines)))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        data = data[: draw(st.integers(0, len(data)))] + draw(st.binary(max_size=3))
    return data


def _entry(path: str) -> Any:
    # The grammar changes the form that users write, with dates as text.
    return json.loads(
        json.dumps(yaml.safe_load((ROOT / "catalog" / path).read_text()), default=str)
    )


def _locked() -> Any:
    text = locked(plan({"qwen36": {"recipe": RECIPE}}))
    return json.loads(json.dumps(yaml.safe_load(text), default=str))


entry = st.sampled_from([_entry(path) for path in CATALOG]).flatmap(_yaml)
lock = _yaml(_locked())

#: Commands that contact no host, and `up`, which contacts no host without a terminal. Other
#: commands validate the same arguments before they connect.
_COMMANDS = _DATA["COMMANDS"]
assert set(_COMMANDS) <= {name for section in sections().values() for name in section}
_WORDS = st.one_of(
    st.sampled_from(_DATA["WORDS"]),
    texts.filter(lambda text: "/" not in text and ".." not in text and "~" not in text),
    numbers.map(str),
    st.tuples(KEYS, st.one_of(scalars.map(str), nested(KEYS).map(as_yaml))).map("=".join),
)  # fmt: skip
command_line = st.tuples(
    st.sampled_from((*_COMMANDS, "chekc", "")),
    st.lists(st.one_of(st.sampled_from(_DATA["OPTIONS"]), _WORDS), max_size=6),
).map(lambda pair: (pair[0], *(word.replace("\0", "") for word in pair[1])))
_UP_WORDS = st.sampled_from(_DATA["UP_WORDS"])
_UP_OPTIONS = st.sampled_from(_DATA["UP_OPTIONS"])
#: Arguments of `up`: logins of boxes, and options; most values are plausible.
up = st.tuples(
    st.lists(st.one_of(*[st.sampled_from(_DATA["BOXES"])] * 5, _WORDS), min_size=1, max_size=3),
    st.lists(st.one_of(*[_UP_OPTIONS] * 5, st.lists(_UP_WORDS, max_size=2)), max_size=2),
    st.sampled_from((["--yes"], ["--yes"], ["--yes"], [])),
).map(
    lambda parts: [
        word.replace("\0", "") for part in (parts[0], *parts[1], parts[2]) for word in part
    ]
)
