"""Values as messages show them."""


def short(value: object, longest: int = 80) -> str:
    """Return the ``repr`` of a value, shortened."""
    try:
        text = repr(value)
    except Exception:  # a value's own __repr__ may fail, or recurse too deeply
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
