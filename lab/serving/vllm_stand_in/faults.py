"""Faults that can be asked for, to try what watches and rolls out a service.

`never-healthy` boots for ever, `wedge` answers /health while generations hang, `crash-after=N`
dies N seconds after it became healthy, `oom` fails for want of GPU memory while loading, and
`garbage` answers `!!!!`. They come from VLLM_STAND_IN_FAULT or /etc/vllm-stand-in-fault.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from .refusal import Refusal

NAMES = ("never-healthy", "wedge", "crash-after=SECONDS", "oom", "garbage")


@dataclass(frozen=True)
class Faults:
    """What goes wrong; crash_after in seconds, None for never."""

    never_healthy: bool = False
    wedge: bool = False
    oom: bool = False
    garbage: bool = False
    crash_after: float | None = None

    async def before_generation(self) -> None:
        """Hang for ever when wedged."""
        if self.wedge:
            await asyncio.Event().wait()

    def before_loading(self) -> None:
        """Refusal for `oom`."""
        if self.oom:
            raise Refusal(
                "torch.OutOfMemoryError",
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "119.68 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this "
                "process has 118.41 GiB memory in use. Of the allocated memory 117.90 GiB is "
                "allocated by PyTorch, and 83.12 MiB is reserved by PyTorch but unallocated. "
                "If reserved but unallocated memory is large try setting "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
                engine=True,
            )


def read_faults(text: str) -> Faults:
    """The faults named in a text, by commas; SystemExit for a name that is none."""
    chosen: dict[str, bool | float] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = word.partition("=")
        key = name.replace("-", "_")
        try:
            if key == "crash_after":
                chosen[key] = float(value)
            elif key in ("never_healthy", "wedge", "oom", "garbage") and not value:
                chosen[key] = True
            else:
                raise ValueError(name)
        except ValueError:
            known = ", ".join(NAMES)
            raise SystemExit(f"vllm stand-in: unknown fault {word!r}; there are {known}") from None
    return Faults(**chosen)  # type: ignore[arg-type]
