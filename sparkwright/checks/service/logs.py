"""What a service logs before it ends, or instead of serving: known messages and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sparkwright.checks.service import gpu_container
from sparkwright.checks.service.check import Check, Symptom
from sparkwright.checks.service.facts import Facts
from sparkwright.findings.finding import Severity
from sparkwright.host.lib import journal

#: A request of a client's, not one of our own tests, which come from the host itself: to a
#: container with a network of its own, from that network's first address.
_CLIENT = r"^(?!.*\b(127\.0\.0|172\.(1[7-9]|2\d|3[01])\.0)\.1:\d).*"
#: name, pattern, cause, remedy, source. An error, unless the name is in _WARNINGS.
_ENTRIES: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "entrypoint-is-bash", r"cannot execute binary file",
        "the image's ENTRYPOINT is bash, so the command 'vllm' is read as a script",
        "entrypoint: vllm in the image's catalog entry, and deploy again",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, quick start; NVIDIA's playbooks and "
        "reports of users",
    ),
    *gpu_container.ENTRIES,
    (
        "no-gpu-visible",
        r"is out of bounds for 0 devices|Failed to infer device type|No CUDA GPUs are available",
        "vLLM sees no GPU: CUDA_VISIBLE_DEVICES names none, or the container was given none",
        "take CUDA_VISIBLE_DEVICES out of the service's environment (gpus names GPUs), and deploy "
        "again: the compose file asks for every GPU",
        "vLLM 0.24.0 itself, as observed with a GPU",
    ),
    (
        "wrong-architecture", r"exec format error",
        "the image is for another CPU: some tags are published for arm64 alone",
        "a tag or image that has this host's architecture: sparkwright advise",
        "NVIDIA's playbooks and reports of users",
    ),
    (
        "wrong-gpu", r"no kernel image is available for execution on the device",
        "the image holds kernels for consumer Blackwell (sm_120, sm_121a) and no other GPU",
        "a recipe for this GPU, or another host",
        "card of vllm-dflash, troubleshooting; card of vllm-spark-omni-q36, hard requirements",
    ),
    (
        "no-attention-backend", r"No valid attention backend found",
        "no attention backend pairs this KV cache dtype with DFlash's non-causal drafting",
        "leave kv_cache_dtype out (BF16), or take tag 2026-07-01-v0.24.0 with TRITON_ATTN and "
        "fp8_e4m3; NVFP4 KV goes with causal speculators only (qwen3_5_mtp, eagle3, ngram)",
        "card of vllm-ultimate-dgx-spark, known issues",
    ),
    (
        "token-budget", r"max_num_scheduled_tokens is set to (-\d+|0\b)",
        "draft tokens for every sequence use up the whole token budget",
        "max_num_batched_tokens: 32768, max_num_seqs: 16",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, quickstart; vLLM itself, as observed",
    ),
    (
        "dflash-concurrency", r"block_table must have shape",
        "tags before 2026-06-18 hand the drafter a padded block table: it dies at 32 and more "
        "requests at once",
        "tag 2026-06-18-v0.23.0-dflashfix or later, or max_num_seqs: 16",
        "card of vllm-ultimate-dgx-spark, note of 2026-06-18",
    ),
    (
        "illegal-address", r"cudaErrorIllegalAddress|an illegal memory access was encountered",
        "most often a drafter from before 2026-04-19 beyond 16K tokens, or weights of the first "
        "layout; without aligned capture sizes also a step that accepted part of a draft",
        "sparkwright verify INVENTORY, then deploy with current revisions (sparkwright lock "
        "--upgrade) and the newest tag",
        "card of vllm-spark-omni-q36, drafter note and v2; card of vllm-ultimate-dgx-spark, "
        "runtime patches",
    ),
    (
        "cuda-out-of-memory", r"CUDA out of memory|torch\.(cuda\.)?OutOfMemoryError",
        "weights, graphs and KV cache need more than is free; a Spark's pool is the host's too",
        "gpu_memory_utilization: 0.80, or half of max_model_len; keep 15 to 20 GB for the host",
        "card of vllm-dflash, troubleshooting",
    ),
    (
        "memory-taken", r"Free memory on device .* is less than desired GPU memory utilization",
        "something else holds memory that the share counts on: a sidecar, page cache, or what a "
        "dead container left",
        "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; then stop sidecars, or lower "
        "gpu_memory_utilization (0.60 beside ASR and TTS)",
        "NVIDIA's playbooks and reports of users; card of vllm-ultimate-dgx-spark, recipe A",
    ),
    (
        "kv-cache-too-small",
        r"No available memory for the cache blocks|KV cache is needed, which is larger than|"
        r"larger than the maximum number of tokens that can be stored in KV cache",
        "after weights and graphs too little is left for one request of max_model_len",
        "a smaller max_model_len, or more gpu_memory_utilization (never above 0.88 on GB10)",
        "card of vllm-dflash, troubleshooting; NVIDIA's playbooks and reports of users",
    ),
    (
        "turboquant-unpatched", r"Cannot copy between CPU and CUDA tensors",
        "TurboQuant without the fix for CUDA graphs",
        "an image with the patched fork: recipe qwen35-27b-dflash-turboquant builds it",
        "card of vllm-dflash, troubleshooting; card of vllm-ultimate-dgx-spark, TurboQuant",
    ),
    (
        "vision-tower-misnamed", r"visual\.\S* not found in params_dict",
        "weights from before 2026-06-18 name the vision tower wrongly: it is skipped, and images "
        "are answered with '!!!!'",
        "sparkwright lock INVENTORY --upgrade, and deploy: the weights were published anew",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, vision fix of 2026-06-18",
    ),
    (
        "weights-are-pointers",
        r"HeaderTooLarge|header too large|InvalidHeader|git-lfs\.github\.com/spec|"
        r"incomplete metadata",
        "the files are Git LFS pointers or incomplete, not weights",
        "sparkwright verify INVENTORY and deploy again: files are fetched and hashed",
        "card of vllm-ultimate-dgx-spark, 'Why these flags'; NVIDIA's playbooks and reports of "
        "users",
    ),
    (
        "weights-not-found",
        r"does not appear to have a file named|No such file or directory: '/(model|drafter)|"
        r"Cannot find any model weights",
        "the mounted directory lacks files: links into a cache outside of it can't be followed",
        "deploy again (real files are mounted), or cp -L what the links lead to",
        "card of vllm-ultimate-dgx-spark, drafter materialization note; NVIDIA's playbooks and "
        "reports of users",
    ),
    (
        "gemma-drafter-backend",
        r"partial multimodal token full attention not supported|flex_attention.*contiguous|"
        r"view size is not compatible.*flex",
        "the Gemma drafter is on the attention backend that this tag can't run it on",
        "attention_backend inside speculative_config: flash_attn from tag 2026-06-11 on, "
        "flex_attention before",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, recipe notes",
    ),
    (
        "head-dimensions", r"head_size.*(not supported|is not supported)|Unsupported head",
        "Gemma 4 has heads of 256 and 512: only Triton takes both",
        "attention_backend: triton_attn for the body",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, heterogeneous attention head dimensions",
    ),
    (
        "model-shape", r"mat1 and mat2 shapes cannot be multiplied",
        "Gemma-4-12B K4 does not fit vLLM's fallback class: it works on no build",
        "another model: sparkwright advise small",
        "card of vllm-ultimate-dgx-spark, models that do not work",
    ),
    (
        "unknown-quantization",
        r"NVFP4_SVD|[Uu]nknown quantization method|quant_algo.*not supported",
        "vLLM does not know this checkpoint's quantization (NVFP4_SVD among them)",
        "quantization as the checkpoint has it (modelopt or compressed-tensors), or another model",
        "card of vllm-ultimate-dgx-spark, models that do not work and recipe A",
    ),
    (
        "quantized-vision", r"embed_vision\.embedding_projection",
        "the variant with a quantized vision embedder: its weights can't be loaded anywhere",
        "the body whose vision embedder is BF16 (gemma4-26b-a4b recipes)",
        "card of vllm-ultimate-dgx-spark, models that do not work; card of "
        "Gemma-4-26B-A4B-it-Uncensored-NVFP4, vision tower",
    ),
    (
        "expert-names", r"KeyError: '?\S*experts?\.\S*",
        "stock vLLM looks for the experts' tensors under other names",
        "an AEON image, whose loader is patched",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, weight loading",
    ),
    (
        "old-transformers", r"Transformers does not recognize this architecture|"
        r"model type `\S+` but Transformers",
        "the image's transformers is older than the model (Gemma 4 needs v5)",
        "a newer tag of the image",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, transformers v5",
    ),
    (
        "block-size-none", r"unsupported operand type.*NoneType.*(block_size|kv_cache)|"
        r"(block_size|kv_cache_utils).*NoneType",
        "older builds leave the block size of linear-attention layers open",
        "tag 2026-06-18-v0.23.0-dflashfix or later, and no mamba_block_size",
        "card of vllm-spark-omni-q36, patch 3; card of vllm-ultimate-dgx-spark, 'Why these flags'",
    ),
    (
        "mrope-missing", r"get_mrope_input_positions",
        "the build lacks the fallback for Qwen3.6's M-RoPE positions",
        "aeon-vllm-ultimate, or vllm-spark-omni-q36 from v1.2 on",
        "card of vllm-spark-omni-q36, patch 4",
    ),
    (
        "unresolved-symbol", r"undefined symbol: \S*(mxfp4|stable)|_C_stable_libtorch",
        "the build names kernels that only data-centre Blackwell has",
        "an image with the lazy import (aeon-vllm-ultimate)",
        "card of vllm-ultimate-dgx-spark, runtime patches; card of vllm-spark-omni-q36, patch 2",
    ),
    (
        "unknown-argument",
        r"unrecognized arguments:|error: argument --|invalid (tool call|reasoning) parser:",
        "this tag's vLLM does not take an argument, or not with this value",
        "sparkwright check INVENTORY names it; drop it or change it",
        "vLLM itself, as observed",
    ),
    (
        "boot-cache-damaged", r"compilation/backends\.py.*, in initialize_cache$",
        "what an earlier start compiled can't be read: a power cut or a full disk came into it",
        "nothing, the next start goes without it; by hand: sudo systemctl stop UNIT, then delete "
        "the service's caches directory",
        "vLLM 0.24.0 itself, as observed with a GPU",
    ),
    (
        "removed-variable", r"Unknown vLLM environment variable detected",
        "a variable that this vLLM no longer reads: it has no effect",
        "linear_backend and moe_backend instead of VLLM_NVFP4_GEMM_BACKEND and "
        "VLLM_USE_FLASHINFER_MOE_*",
        "card of vllm-ultimate-dgx-spark, note of 2026-07-02",
    ),
    (
        "marlin-fallback", r"does not have native support for FP4 computation",
        "NVFP4 runs through Marlin instead of the tensor cores: slower",
        "VLLM_TEST_FORCE_FP8_MARLIN: \"0\", and an image built for sm_121a",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, what's in the container; card of "
        "vllm-spark-omni-q36, patch 6",
    ),
    (
        "port-in-use", r"[Aa]ddress already in use",
        "another process listens on the service's port",
        "sudo ss -ltnp shows it; stop it, or give the service another port",
        "NVIDIA's playbooks and reports of users",
    ),
    (
        "shared-memory", r"unable to open shared memory object|Bus error|"
        r"No space left on device.*/dev/shm",
        "/dev/shm in the container is too small for its workers",
        "hardening: default, whose containers have the host's own /dev/shm, which 'df -h /dev/shm' "
        "there shows; with hardening: strict, a larger shm_gib in the recipe",
        "card of vllm-ultimate-dgx-spark, recipes (--shm-size); NVIDIA's playbooks and reports "
        "of users",
    ),
    (
        "gpu-gone-inside", r"Failed to initialize NVML: Unknown Error|no CUDA-capable device is",
        "systemd took the GPU from the running container: a daemon-reload does that where devices "
        "were injected by the runtime hook",
        "restart the service: sudo systemctl restart UNIT; and let nothing reload systemd while "
        "it serves (unattended upgrades do)",
        "NVIDIA's playbooks and reports of users",
    ),
    (
        "model-not-found", r'"POST /v1/\S+ HTTP/1\.\d" 404',
        "clients ask for a model name that is not served",
        "sparkwright plan INVENTORY shows the names; served_names adds one",
        "card of vllm-dflash, troubleshooting",
    ),
    (
        "remote-code-needed", r"contains custom code|consider setting `trust_remote_code",
        "the model's own Python code is needed, and no service of ours runs such code unread",
        "sparkwright lock INVENTORY; name the Python files you have read as `code` of the model's "
        "catalog entry, and set trust_remote_code in the service's arguments",
        "sparkwright; transformers' own message",
    ),
    (
        "key-refused", rf'{_CLIENT}"POST /v1/\S+ HTTP/1\.\d" 401',
        "clients send no key, or an old one",
        "give them the key of api_key_file; it does not change with a restart",
        "card of vllm-dflash, read first; vLLM itself, as observed",
    ),
    (
        "prompt-too-long", rf'{_CLIENT}"POST /v1/\S+ HTTP/1\.\d" 400',
        "prompts longer than max_model_len, or requests that vLLM can't read",
        "a larger max_model_len if the KV cache holds it, or shorter prompts",
        "vLLM itself, as observed",
    ),
)  # fmt: skip
_WARNINGS = frozenset(
    ("vision-tower-misnamed", "removed-variable", "marlin-fallback", "model-not-found",
     "key-refused", "prompt-too-long")
)  # fmt: skip
_DIED = (
    r"EngineDeadError|EngineCore (encountered a fatal error|failed)|^\w*(Error|Exception): |"
    r"Engine core initialization failed"
)


def _said(pattern: str, facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        line = service.last(pattern)
        if line is not None:
            yield Symptom(line, name)


def _died(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        line = None if service.healthy else service.last(_DIED)
        if line is not None:
            yield Symptom(journal.cause(service.log) or line, name)


CHECKS = (
    *(
        Check(
            name,
            Severity.WARNING if name in _WARNINGS else Severity.ERROR,
            cause,
            remedy,
            source,
            partial(_said, pattern),
        )
        for name, pattern, cause, remedy, source in _ENTRIES
    ),
    Check(
        "engine-died", Severity.ERROR,
        "vLLM ended with an error that is in none of the cards",
        "the lines before it: sudo journalctl -u UNIT; the release before: sparkwright rollback",
        "card of vllm-dflash, troubleshooting ('If you see a Traceback')", _died, vague=True,
    ),
)  # fmt: skip
