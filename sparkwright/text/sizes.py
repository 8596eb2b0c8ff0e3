"""Units of sizes."""

#: Bytes of a gibibyte.
GIB = 1024**3
