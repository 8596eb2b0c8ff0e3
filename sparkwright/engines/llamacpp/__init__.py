"""llama.cpp's ``llama-server``: what it takes, what it says, and how it goes wrong."""
