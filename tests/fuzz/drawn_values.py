"""Values for settings, mostly invalid: as Python, as YAML, on a command line."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

#: Values that have ended or blocked programs of this kind: numbers, paths, texts, depth.
TEXTS = (
    *("", " ", "22", "8000", "..", "../x", "../../tmp/x", "/", "/etc/passwd", "a/b", "~", "-x"),
    *("\x00", "a\x00b", "\x1b[31m", "\n", "a\nb", "\udc80", "\ufeff", "é", "\u202e", "x" * 5000),
    *("nan", "inf", "1e999", "2026-02-30", "yes", "null", "{{ 7*7 }}", "$(id)", "100%", "0%"),
    *("http://", "https://[", "http://h:99999", "sha256:", "sha256:" + "0" * 64, "GPU-0"),
    *("spark-1", "127.0.0.1", "::1", "*", "qwen36", "latest", "own", "default"),
)
NUMBERS = (
    *(0, 1, -1, 22, 8000, 55536, 65535, 65536, 70000, 2**31, 2**63, 2**64, 10**400, -(10**400)),
    *(True, False, 0.0, -0.5, 1e308, float("nan"), float("inf"), float("-inf")),
)
texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=12), st.characters(codec=None).map(str))
numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(), st.floats())
scalars = st.one_of(st.none(), texts, numbers)


def nested(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Lists and mappings of scalars, some of them deep."""
    deep = st.sampled_from((30, 60, 500, 3000)).map(Deep)
    flat = st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=8,
    )
    return st.one_of(flat, flat, flat, deep)


def json_values(
    text: st.SearchStrategy[str], *more: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """JSON values with these texts and keys, and little depth."""
    return st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), text, *more),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=6,
    )


@dataclass(frozen=True)
class Deep:
    """Nested lists of a given depth, as text."""

    levels: int

    def __repr__(self) -> str:
        return f"__import__('functools').reduce(lambda v, _: [v], range({self.levels}), 1)"


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document of lists and mappings, down to the sixth level."""
    result = [before] if before else []
    if len(before) == 6:
        return result
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        result += paths(item, (*before, key))
    return result


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at one place; a value of ``DROPPED`` removes the place."""
    key, *rest = path
    copy = dict(document) if isinstance(document, dict) else list(document)
    if rest:
        copy[key] = changed(copy[key], tuple(rest), value)
    elif value is DROPPED:
        del copy[key]
    else:
        copy[key] = value
    return copy


DROPPED = object()


@st.composite
def mutated(draw: st.DrawFn, document: Any, keys: st.SearchStrategy[str]) -> Any:
    """A valid document with up to three places changed, added or taken away."""
    for _ in range(draw(st.integers(1, 3))):
        places = paths(document)
        if not places:
            break
        path = draw(st.sampled_from(places))
        kind = draw(st.sampled_from(("change", "change", "add", "drop")))
        if kind == "add":
            path = (*path[:-1], draw(keys))
            if not isinstance(_at(document, path[:-1]), dict):
                continue
        value = DROPPED if kind == "drop" else draw(nested(keys))
        document = changed(document, path, value)
    return document


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def python(value: Any) -> str:
    """Python expression of a value."""
    return f"(lambda nan, inf: {value!r})(float('nan'), float('inf'))"
