"""Names and context of the models that an engine lists at ``/v1/models``."""

from sparkwright.host.lib.annotations import Any


def names(answer: Any) -> list[str]:
    """Return the names in a list of models. llama-server has one entry, with all names as aliases.

    Raises:
        KeyError, TypeError: the answer is not a list of models.
    """
    models = answer["data"]
    every = (str(name) for model in models for name in (model["id"], *model.get("aliases", ())))
    return list(dict.fromkeys(every))


def context(model: Any) -> int | None:
    """Return the context length in tokens of an entry in the list; None if the entry lacks it."""
    tokens = model.get("max_model_len") or (model.get("meta") or {}).get("n_ctx")
    return tokens and int(tokens)
