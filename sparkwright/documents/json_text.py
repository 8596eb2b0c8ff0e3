"""JSON from outside."""

import json
from pathlib import Path
from typing import Any

from sparkwright.documents.bounds import MOST, Unusable, bounded


def load(text: str | bytes, most: int = MOST) -> Any:
    """The value of a JSON text of at most so many values.

    Raises:
        Unusable: for what is no JSON, or beyond the bounds.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"not valid JSON: {error.msg}"
        raise Unusable(what, "fix it there", error.lineno) from None
    except UnicodeDecodeError:
        raise Unusable("not valid JSON: it is not UTF-8", "save it in UTF-8") from None
    except ValueError:
        raise Unusable("a number with too many digits", "write a smaller one") from None
    except RecursionError:
        raise Unusable("nested too deep", "write it flatter") from None
    bounded(data, most)
    return data


def load_object(text: str | bytes, most: int = MOST) -> dict[str, Any]:
    """The same of a JSON object. Raises Unusable for anything else, too."""
    data = load(text, most)
    if not isinstance(data, dict):
        raise Unusable("not a JSON object", "name the right file")
    return data


def generated_object(path: Path, remedy: str) -> dict[str, Any]:
    """The JSON object of a file that a program of ours wrote, whatever its size.

    Stricter than Python's own reader: what it takes can be written into a page.

    Raises:
        Unusable: for what can't be read, or is no object.
    """
    from pydantic_core import from_json  # help and mistakes load nothing of pydantic

    try:
        data = from_json(path.read_bytes(), allow_inf_nan=False)
    except OSError as error:
        raise Unusable(f"can't be read: {error.strerror}", "fix its rights") from None
    except ValueError as error:
        raise Unusable(f"not valid JSON: {error}", remedy) from None
    if not isinstance(data, dict):
        raise Unusable("not a JSON object", remedy)
    return data
