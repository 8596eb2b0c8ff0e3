"""JSON from outside."""

import json
from typing import Any

from sparkwright.documents.bounds import MOST, Unusable, bounded


def load(text: str | bytes, most: int = MOST) -> Any:
    """Return the value of a JSON text of at most this many values.

    Raises:
        Unusable: the text is not JSON, or beyond the bounds.
    """
    # Count values before parsing: an empty list takes 2 bytes of text, but 64 bytes of memory.
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if sum(map(raw.count, (b"[", b"{", b","))) > most:
        raise Unusable(f"more than {most} values", "use fewer values")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"not valid JSON: {error.msg}"
        raise Unusable(problem, "fix that line", error.lineno) from None
    except UnicodeDecodeError:
        raise Unusable("not valid JSON: it is not UTF-8", "save the file in UTF-8") from None
    except ValueError:
        raise Unusable("a number with too many digits", "write a smaller number") from None
    except RecursionError:
        raise Unusable("nested too deep", "use fewer nested levels") from None
    bounded(data, most)
    return data


def load_object(text: str | bytes, most: int = MOST) -> dict[str, Any]:
    """Return the value of a JSON text that is an object.

    Any other value raises Unusable.
    """
    data = load(text, most)
    if not isinstance(data, dict):
        raise Unusable("not a JSON object", "name the right file")
    return data
