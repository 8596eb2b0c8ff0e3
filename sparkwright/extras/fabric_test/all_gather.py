"""A rank of an all-gather, run inside the serving image: ``python3 -c TEXT BYTES``.

The ranks connect through torch.distributed at MASTER_ADDR, without MPI. The program prints one line
of JSON. The file is read as text and given to the container's Python; the controller does not run
it.
"""

import json
import os
import sys
import time
from importlib import import_module
from typing import Any

ROUNDS = 10


def main(size: int) -> None:
    """Gather ``size`` bytes on every rank, several times; rank and ranks are in the environment."""
    torch: Any = import_module("torch")
    distributed: Any = import_module("torch.distributed")
    gpu = torch.cuda.is_available()
    backend = "nccl" if gpu else "gloo"
    ranks = int(os.environ["WORLD_SIZE"])
    distributed.init_process_group(backend)
    device = torch.device("cuda" if gpu else "cpu")
    part = torch.zeros(size // ranks, dtype=torch.uint8, device=device)
    parts = list(torch.zeros(part.numel() * ranks, dtype=torch.uint8, device=device).chunk(ranks))

    def rounds(number: int) -> float:
        began = time.monotonic()
        for _ in range(number):
            distributed.all_gather(parts, part)
        if gpu:
            torch.cuda.synchronize()
        return (time.monotonic() - began) / number

    rounds(2)
    distributed.barrier()
    seconds = rounds(ROUNDS)
    # Bus bandwidth as in nccl-tests: the bytes over the slowest link.
    gbytes = part.numel() * ranks / seconds * (ranks - 1) / ranks / 1e9
    print(json.dumps({"gbytes": gbytes, "backend": backend}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]))
