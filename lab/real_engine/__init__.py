"""Real engines: vLLM and llama-server for the CPU as images of the lab, with a model for each.

The rest of this text is about vLLM. `--engine llama-server` builds and pushes
`lab/llama.cpp:server`, from Debian's unstable: 33 MB packed, 112 MB of disk, a start of a second.
The model of this image is the lab's Qwen3 body as GGUF files (`lab/hub/tiny_gguf.py`).

The other images of the lab are a fake that computes nothing. The image of vLLM contains the real
vLLM 0.32.0 with the lab's own pair (`lab/hub/tiny_qwen3.py`), so that compose file, unit, key,
gate, smoke, metrics and speculation are tested against the answers of a real engine.

**On this machine alone**: `make test-real-engine`. No part of the fleet is needed.

**On a host of the fleet**, after `python -m lab up`:

1. `python -m lab.real_engine push --registry http://10.213.77.2:5000`: builds missing parts and
   pushes `lab/vllm-cpu:0.32.0` to the depot. In Python: `image.push_to(address, VLLM,
   build.ensure(VLLM).layers)`. A second call sends nothing. Run the command after `up`, which
   pushes only the fakes, and with an interpreter that has `venv`.
2. The pair is on the depot's hub since `up`: its repositories are among `MINIATURES`.
   `inventory/virtual.py` names `lab/catalog` and the mirror of `lab.invalid`, the image's registry
   in the catalog.
3. Give the recipe to this host only, for instance by host data in an inventory of your own:
   `"services": {"tiny": {"recipe": "lab-tiny-qwen3-dflash", "port": 8000}}`; then deploy. To keep
   the host's other service, name both services. The image is for x86_64, like all hosts of the lab.
4. Deploy to one host at a time: two cores start the engine in 33 to 53 s. The engine takes 2.4 GB
   of memory, and 376 MB packed and 1.25 GB unpacked of the host's disk.
   `python -m lab.real_engine remove` removes the cache; `python -m lab down` keeps it.

If the engine may not bind its memory to a NUMA node, as under Docker's default seccomp profile, the
engine prints two warnings and still serves. The engine stops within a second.

Models that answer: `lab-tiny`, `lab-tiny-fast` and `lab-tiny-deep` answer "This tiny model has but
one word word word ..." to every question; with `enable_thinking` the whole answer is reasoning.
After the seventh token every draft is accepted. Send requests with temperature 0: at a higher
temperature, this engine took wrong tokens after a rejected draft.
"""
