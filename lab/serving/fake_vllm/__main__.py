"""`python -m fake_vllm`: the same as the command `vllm` in the image."""

from __future__ import annotations

import sys

from .command import main

sys.exit(main(sys.argv[1:]))
