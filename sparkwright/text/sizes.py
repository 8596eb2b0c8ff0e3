"""Units of sizes."""

#: Bytes.
GIB = 1024**3
