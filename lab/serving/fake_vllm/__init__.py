"""A fake for vLLM: the same arguments, refusals, routes and metrics, but no model.

The fake runs on Python 3.11 or newer with only the standard library, as `vllm serve MODEL ...` in
the lab's serving image or as `python -m fake_vllm serve MODEL ...`. The fake's answers come from a
hash of the prompt. The fake is for tests of programs that deploy and watch vLLM. `sglang` and
`llama_server` are fakes for two other engines on the same HTTP server.
"""
