"""Cards that the catalog quotes, each with name, subject, date and address."""

_HUB = "https://huggingface.co/AEON-7"
_GITHUB = "https://github.com/AEON-7"
#: Name in sources, subject, date, address.
CARDS = (
    (
        "card of vllm-ultimate-dgx-spark",
        "the image `aeon-vllm-ultimate` and the models that it serves",
        "2026-07-02",
        f"{_GITHUB}/vllm-ultimate-dgx-spark",
    ),
    (
        "card of Qwen3.6-35B-A3B-heretic-NVFP4",
        "the model `Qwen3.6-35B-A3B-heretic-NVFP4`",
        "2026-06-19",
        f"{_HUB}/Qwen3.6-35B-A3B-heretic-NVFP4",
    ),
    (
        "card of vllm-dflash",
        "the image `vllm-dflash`, for Qwen3.5-27B",
        "2026-04-18 (estimated: the card has no date)",
        f"{_GITHUB}/vllm-dflash",
    ),
    (
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4",
        "the model `Gemma-4-26B-A4B-it-Uncensored-NVFP4`",
        "2026-06-11",
        f"{_HUB}/Gemma-4-26B-A4B-it-Uncensored-NVFP4",
    ),
    (
        "card of vllm-spark-omni-q36",
        "the image `vllm-spark-omni-q36`, for Qwen3.6-35B-A3B-heretic",
        "2026-05-01",
        f"{_GITHUB}/Qwen3.6-NVFP4-DFlash",
    ),
    (
        "vLLM's recipes",
        "stock vLLM: its authors' recipes for RTX 5090 and RTX PRO 6000 (#663, #648, #854)",
        "2026-09-02",
        "https://github.com/vllm-project/recipes",
    ),
)
