"""`/v1/embeddings`, `/v1/rerank` and `/score` of a model that pools: texts as counts of words.

A model with an architecture for classification is a reranker, and has no vectors.
"""

import hashlib
import math
import operator
import re
import time
from typing import Any

from .backend import Backend
from .errors import bad_request
from .http_server import Response
from .server_settings import Settings
from .shapes import new_id
from .text import compact, tokens_of

_DEFAULT_LENGTH = 64


def reranks(settings: Settings) -> bool:
    """Return whether the model gives scores and no vectors."""
    architectures = settings.model.config.get("architectures") or [""]
    return "Classification" in architectures[0]


async def embeddings(backend: Backend, body: dict[str, Any]) -> Response:
    """Vectors of one text or of several; ApiError for a request that vLLM refuses."""
    model, asked = backend.model_of(body), body.get("input")
    texts = [asked] if isinstance(asked, str) else asked
    if not isinstance(texts, list) or not texts:
        raise bad_request("input: a text or a list of texts is required", "input")
    await backend.faults.before_generation()
    data = [
        {"index": index, "object": "embedding", "embedding": _vector(backend, str(text))}
        for index, text in enumerate(texts)
    ]
    head = {"id": f"embd-{new_id()}", "object": "list", "created": int(time.time())}
    answer = {**head, "model": model, "data": data, "usage": _usage(backend, texts)}
    return Response(200, compact(answer).encode())


async def rerank(backend: Backend, body: dict[str, Any]) -> Response:
    """Documents by their score for a question, the highest first."""
    model, documents = backend.model_of(body), body.get("documents")
    if not isinstance(documents, list) or "query" not in body:
        raise bad_request("query and documents are required", "documents")
    await backend.faults.before_generation()
    scores = _scores(backend, str(body["query"]), documents, inverted=backend.faults.wrong_order)
    results = [
        {"index": index, "document": {"text": documents[index], "multi_modal": None},
         "relevance_score": scores[index]}
        for index in sorted(range(len(documents)), key=lambda index: -scores[index])
    ]  # fmt: skip
    usage = _usage(backend, [body["query"], *documents])
    answer = {"id": f"rerank-{new_id()}", "model": model, "usage": usage, "results": results}
    return Response(200, compact(answer).encode())


async def score(backend: Backend, body: dict[str, Any]) -> Response:
    """Scores of pairs of texts: the first text with each second text, as in vLLM."""
    model, first, others = backend.model_of(body), body.get("text_1"), body.get("text_2")
    if not isinstance(first, str) or not isinstance(others, list):
        raise bad_request("text_1 and text_2 are required", "text_1")
    await backend.faults.before_generation()
    scores = _scores(backend, first, others, inverted=backend.faults.wrong_scores)
    data = [{"index": n, "object": "score", "score": score} for n, score in enumerate(scores)]
    head = {"id": f"embd-{new_id()}", "object": "list", "created": int(time.time())}
    answer = {**head, "model": model, "data": data, "usage": _usage(backend, [first, *others])}
    return Response(200, compact(answer).encode())


def _scores(backend: Backend, query: str, texts: list[Any], *, inverted: bool) -> list[float]:
    vector = _vector(backend, query)
    scores = [math.fsum(map(operator.mul, vector, _vector(backend, str(text)))) for text in texts]
    return [-score for score in scores] if inverted else scores


def _vector(backend: Backend, text: str) -> list[float]:
    """A text's words, counted by their hashes, as a vector of length 1."""
    config = backend.settings.model.config
    length = int((config.get("text_config") or config).get("hidden_size") or _DEFAULT_LENGTH)
    length = length // 2 if backend.faults.short_vectors else length
    counts = [0.0] * length
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        counts[int.from_bytes(digest[:4], "big") % length] += 1
    size = math.hypot(*counts) or 1.0
    return [count / size for count in counts]


def _usage(backend: Backend, texts: list[Any]) -> dict[str, int]:
    tokens = sum(len(tokens_of(str(text))) for text in texts)
    backend.metrics.add("vllm:prompt_tokens_total", tokens)
    return {"prompt_tokens": tokens, "total_tokens": tokens}
