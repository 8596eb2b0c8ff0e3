"""Names and context of the models that an engine lists at ``/v1/models``."""

from sparkwright.host.lib.annotations import Any


def names(answer: Any) -> list[str]:
    """Names in a list of models. llama-server has one entry, with all its names as aliases.

    Raises:
        KeyError, TypeError: for another answer.
    """
    models = answer["data"]
    every = (str(name) for model in models for name in (model["id"], *model.get("aliases", ())))
    return list(dict.fromkeys(every))


def context(model: Any) -> int | None:
    """Tokens of a sequence, by an entry of the list; None if it does not say them."""
    tokens = model.get("max_model_len") or (model.get("meta") or {}).get("n_ctx")
    return tokens and int(tokens)
