"""vLLM's routes that cost or tell something, and those of them that its own key check leaves open.

Of vLLM 0.24.0, by its decorators; 0.32.0 has no other. Routes that change the server are not among
them: nobody asks those to see what happens.
"""

from __future__ import annotations

#: What vLLM's key check protects (its GUARDED_PREFIX).
_GUARDED = ("/v1", "/v2", "/inference")

INFERENCE = (
    ("GET", "/metrics"),
    ("GET", "/v1/models"),
    ("POST", "/classify"),
    ("POST", "/detokenize"),
    ("POST", "/generate"),
    ("POST", "/generative_scoring"),
    ("POST", "/inference/v1/generate"),
    ("POST", "/invocations"),
    ("POST", "/pooling"),
    ("POST", "/rerank"),
    ("POST", "/score"),
    ("POST", "/tokenize"),
    ("POST", "/v1/audio/transcriptions"),
    ("POST", "/v1/audio/translations"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/chat/completions/batch"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("POST", "/v1/rerank"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/score"),
    ("POST", "/v2/embed"),
    ("POST", "/v2/rerank"),
)

OPEN = tuple(path for _, path in INFERENCE if not path.startswith(_GUARDED))
"""What answers without the key where nothing stands before vLLM."""
