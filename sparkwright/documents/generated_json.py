"""JSON files of sparkwright's own programs, of any size, as values of a type."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.findings.validation import problems_of


def valid(kind: Any, data: Any, where: str, problems: list[Finding]) -> Any:
    """Return the data as a value of this type; add a mistake to ``problems`` and return None."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        problems.extend(problems_of(error, where))
        return None


def read(kind: Any, path: Path, remedy: str, problems: list[Finding], **further: Any) -> Any:
    """Read the JSON object of a file as a value of this type; report mistakes like ``valid``.

    This reader is stricter than Python's json: every accepted value can be written into a page.

    Args:
        remedy: remedy for data that is not a JSON object.
        further: keys and values that are added to the object.
    """
    try:
        data = from_json(path.read_bytes(), allow_inf_nan=False)
        if isinstance(data, dict):
            return valid(kind, data | further, str(path), problems)
        problem = mistake(str(path), "not a JSON object", remedy)
    except OSError as error:
        problem = mistake(str(path), f"can't be read: {error.strerror}", "fix the permissions")
    except ValueError as error:
        problem = mistake(str(path), f"not valid JSON: {error}", remedy)
    problems.append(problem)
    return None
