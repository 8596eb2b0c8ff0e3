"""Answers of a model that pools: an embedding model's vectors, and the scores of documents that it
and a reranker give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib import documents
from sparkwright.host.lib.annotations import Any
from sparkwright.host.smoke.client import Client, fail_if, succeeded

_DOCUMENTS = ("Sow the carrots in spring.", "Paris is the capital of France.", "The oil is low.")
#: The question, and the document that answers it.
_QUERY, _RIGHT = "What is the capital of France?", 1
#: Keys of a model's configuration that may give a vector's length.
_LENGTHS = ("hidden_size", "out_features", "projection_dim", "d_model", "n_embd")


def pooled(client: Client, name: str = "") -> str:
    """Vectors of the model's own length, and the right one of three documents first, by its rank
    and by its score."""
    request, model = client.request, name or client.request.served_names[0]
    seen, body = "", {"model": model, "input": _DOCUMENTS}
    answer = client.call("POST", request.embeddings, body) if request.embeddings else None
    if answer is not None and answer.status != 404:  # a reranker's server has no such route
        data = succeeded(request.embeddings, answer).json()["data"]
        seen = _vectors([item["embedding"] for item in data], Path(request.model_files))
    if not request.rerank:
        return seen.rstrip("; ")
    body = {"model": model, "query": _QUERY, "documents": _DOCUMENTS}
    results = client.json("POST", request.rerank, body)["results"]
    best = _best(request.rerank, {item["index"]: item["relevance_score"] for item in results})
    if request.score:
        body = {"model": model, "text_1": _QUERY, "text_2": _DOCUMENTS}
        data = client.json("POST", request.score, body)["data"]
        _best(request.score, {item["index"]: item["score"] for item in data})
    return f"{seen}the right document first, {best:.3g}"


def _best(route: str, scores: Mapping[int, float]) -> float:
    """The highest score of the documents, by their numbers; a fault where it is not the right
    one's."""
    first = max(scores, key=lambda number: scores[number])
    finite = len(scores) == len(_DOCUMENTS) and all(map(math.isfinite, scores.values()))
    shown = f"{route}: document {first} has the highest of the scores {list(scores.values())}"
    fail_if(not finite or first != _RIGHT, "order", f"{shown}, not document {_RIGHT}")
    return scores[first]


def _vectors(vectors: list[list[Any]], files: Path) -> str:
    numbers = [number for vector in vectors for number in vector]
    finite = all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
    configs = [documents.read(path) for path in files.glob("**/config.json")]
    parts = [part for config in configs if isinstance(config, dict)
             for part in (config, *config.values()) if isinstance(part, dict)]  # fmt: skip
    own = {part[key] for part in parts for key in _LENGTHS if isinstance(part.get(key), int)}
    lengths = {len(vector) for vector in vectors}
    sound = finite and all(map(any, vectors)) and len(vectors) == len(_DOCUMENTS)
    shown = f"{len(vectors)} vectors of {lengths} numbers (finite: {sound}); its files say {own}"
    fail_if(not sound or len(lengths) != 1 or (own and not lengths <= own), "vector", shown)
    return f"vectors of {lengths.pop()} numbers; "
