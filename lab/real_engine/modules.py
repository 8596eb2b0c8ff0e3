"""Compile the engine's imports once: each of its three processes would do so at every start.

Compiling everything would add a third to the image; a start opens only this part. It also shows
at once, after a change of versions, that the engine's parts can be imported together.
"""

import subprocess
from pathlib import Path

from lab.real_engine.tree import inside

_COMPILE = """
import sys
import vllm.entrypoints.cli.serve, vllm.entrypoints.openai.api_server
import vllm.v1.engine.core, vllm.v1.executor.multiproc_executor, vllm.v1.worker.cpu_worker
import vllm.model_executor.models.qwen3, vllm.model_executor.models.qwen3_dflash
import transformers.models.qwen3.configuration_qwen3, transformers.models.qwen2
import py_compile
for module in list(sys.modules.values()):
    source = getattr(module, '__file__', None) or ''
    if source.startswith('/usr/') and source.endswith('.py'):
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(source, doraise=True, invalidation_mode=mode)
"""


def compile_imported(root: Path) -> None:
    """Run in the tree: import the engine's parts and compile the loaded modules."""
    arguments = inside(root, ["/usr/bin/python3", "-B", "-c", _COMPILE])
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the engine can't be imported:\n{done.stderr.strip()[-2000:]}")
