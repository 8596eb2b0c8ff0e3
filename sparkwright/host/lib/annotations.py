"""Names for type annotations. Programs on hosts do not import ``typing``, which would take 3 ms."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    Any = T = object

__all__ = ["TYPE_CHECKING", "Any", "T"]
