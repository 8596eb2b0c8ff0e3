"""Values of vLLM's arguments beyond which a GB10 was seen to fail."""

#: ``gpu_memory_utilization`` above which unified memory thrashes.
MOST_ON_GB10 = 0.88
#: ``max_num_batched_tokens``: the largest batch that has hung no Spark.
SAFE_BATCH = 32768
#: The shares that the cards give, as a remedy.
SHARES = (
    "0.60 beside ASR and TTS sidecars, 0.70 to 0.85 where the model is the dominant workload, and "
    f"never above {MOST_ON_GB10:g}"
)
