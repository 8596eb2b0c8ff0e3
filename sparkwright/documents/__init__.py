"""Files and texts from outside, read within bounds: size, depth, numbers, encoding."""
