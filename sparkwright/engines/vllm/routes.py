"""Routes of vLLM's server, by the decorators of 0.24.0; 0.32.0 has the same.

Routes that change the server are not among them: nobody asks those to see what happens.
"""

from __future__ import annotations

from sparkwright.engines.engine import Routes

ROUTES = Routes(
    # Not here, though below /v1: load_lora_adapter and unload_lora_adapter, which change the
    # server, and .../render and .../derender, which are vLLM's own plumbing.
    clients=(
        ("GET", "/metrics"),
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/batch"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/{id}"),
        ("POST", "/v1/responses/{id}/cancel"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/score"),
        ("POST", "/v1/rerank"),
        ("POST", "/v1/audio/transcriptions"),
        ("POST", "/v1/audio/translations"),
        ("GET", "/v1/realtime"),
        ("POST", "/tokenize"),
        ("POST", "/detokenize"),
    ),
    inference=(
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
    ),
    # GUARDED_PREFIX of 0.24.0; 0.32.0 also has /cohere and its routes.
    guarded=("/v1", "/v2", "/inference", "/cohere"),
)
