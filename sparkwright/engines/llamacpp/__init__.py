"""llama.cpp's ``llama-server``: arguments, log and faults."""
