"""What vLLM's own recipes say of a model, as a registry of them had it at one commit."""

from __future__ import annotations

from typing import Any

from sparkwright.catalog.data import Data


class ModelRecipe(Data):
    """A recipe of vllm-project/recipes, without what is written for people.

    Attributes:
        source: ``repository@commit:path``.
        data: its keys, as they are there; read by ``imports.vllm_recipes``.
    """

    source: str
    data: dict[str, Any]
