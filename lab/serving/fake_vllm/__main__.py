"""`python -m fake_vllm`: the same as the command `vllm` in the image."""

import sys

from .command import main

sys.exit(main(sys.argv[1:]))
