"""JSON from outside."""

from __future__ import annotations

import json
from typing import Any

from sparkwright.documents.bounds import Unusable, bounded


def load(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        Unusable: for what is no JSON, or beyond the bounds.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"not valid JSON: {error.msg}"
        raise Unusable(what, "fix it there", error.lineno) from None
    except ValueError:
        raise Unusable("a number with too many digits", "write a smaller one") from None
    except RecursionError:
        raise Unusable("nested too deep", "write it flatter") from None
    bounded(found)
    return found
