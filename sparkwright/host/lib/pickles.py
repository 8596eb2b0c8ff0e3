"""Files that run code when they are loaded: Python's pickles, by the names that they go by."""

from __future__ import annotations

SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")


def is_pickle(path: str) -> bool:
    """Whether a file of a model's repository is a pickle, by its name.

    One that is called .safetensors is found by its header, once it is fetched (contents.py).
    """
    return path.lower().endswith(SUFFIXES)
