"""The serving image of the lab: a fake for vLLM, and the code that builds and pushes it.

The fake computes no model. The image runs `fake_vllm` as `vllm`; `build` makes the image from
Debian packages and pushes it to the lab's registry; `flags/` holds the arguments of the real `vllm
serve` of each version and `metrics/` the names of its metrics.
"""
