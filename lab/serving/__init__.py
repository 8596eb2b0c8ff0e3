"""The serving image of the lab: a fake for vLLM, and what builds and pushes it.

No model is computed in it. `fake_vllm` is what the image runs as `vllm`; `build` makes the
image from Debian packages and pushes it to the lab's registry; `flags/` holds the arguments of
the real `vllm serve` of each version and `metrics/` the names of its metrics.
"""
