"""docs/engines.md: what each engine has and lacks, by the interface of engines."""

from collections.abc import Callable

from docs.generate.markdown import GENERATED, table
from sparkwright.catalog import Catalog
from sparkwright.engines import ENGINES, engine
from sparkwright.engines.engine import Engine
from sparkwright.findings.check import load

_HEAD = f"""\
# Engines

<!-- {GENERATED.format(what="the interface of engines")} -->

sparkwright serves with vLLM, and with the other engines of this table. A recipe names its image,
and the image its engine. A service that names a model alone gets llama.cpp for GGUF files and
vLLM for everything else; `engine` in the service chooses another one, and `sparkwright plan`
says which one it is and why:

    services = {{"chat": {{"model": "unsloth/Qwen3.5-9B-GGUF"}}}}

An engine is **unproven** until it ran on real hardware with sparkwright.

"""
_TAIL = """
Prometheus gets the metrics of every engine under the names that vLLM has for them: `sparkwright
monitoring` writes the rules that rename them.

## llama.cpp

- The file that is served is `file` of the model's entry in the catalog; a split file is named by
  its first part. Of a repository of many quantizations, `model: org/name-GGUF:Q4_K_M` names one
  ([Your own models](own-models.md)).
- llama-server sets the KV cache of `ctx_size` tokens aside at its start. Its slots (`parallel`)
  split that context, or share it with `kv_unified`; a derived recipe has four slots that share
  it.
- Weights that do not fit the card stay in the host's memory, and its CPU computes with them: the
  plan says how many GiB (`n_gpu_layers`, `n_cpu_moe`).
- `/slots`, `/props`, `/lora-adapters` and every other route that changes the server are shut at
  the proxy. The built-in page and its tools are off.
- Upstream's images `server-cuda13-bN` are for amd64 and arm64, and are built with kernels for
  sm_120a and sm_121a (`.github/workflows/docker.yml` and `ggml/src/ggml-cuda/CMakeLists.txt` of
  llama.cpp): a Spark pulls the same tag. Nobody has run them with sparkwright yet. A site names
  another image in `image`.

## SGLang

- SGLang listens on TCP alone, takes its API key only as an argument, and writes its arguments
  into its log. A short program starts it instead (`sparkwright/engines/sglang/launch.py`): it
  gives SGLang's server a Unix socket and asks for the key before SGLang does. No command line, no
  variable and no log has the key.
- Routes that change the server (`/flush_cache`, `/update_weights_from_disk` and the like), tell
  its arguments (`/server_info`) or are SGLang's own (`/generate`) are shut at the proxy.
- `mem_fraction_static` counts weights and KV cache. Activations and CUDA graphs come on top: on a
  Spark more than 0.80 is a warning.
- A service has one name: SGLang answers to any name, and lists one.
- SGLang counts verified drafts, not accepted tokens: the smoke test and `doctor` see that it
  drafts, and not how well.
- SGLang derives no recipe from a model's own files: a service names a recipe on the image
  `sglang`.
- Images up to 0.5.10 do not start on a Spark, since their kernels end at sm_120a.
"""


def page(shipped: Catalog) -> str:
    """The page."""
    programs = [engine(name) for name in ENGINES]

    def mark(value: object) -> str:
        return "yes" if value else "-"

    def tags(program: Engine) -> str:
        own = [image for image in shipped.images.values() if image.engine == program.name]
        each = {name for image in own for tag in image.tags.values() for name in tag.architectures}
        return ", ".join(sorted(each))

    rows: dict[str, Callable[[Engine], str]] = {
        "`engine`": lambda program: f"`{program.name}`",
        "formats of weights": lambda program: ", ".join(sorted(program.formats)),
        "architectures of its images": tags,
        "arguments judged by the parser of": lambda program: ", ".join(
            program.parser.tables.versions()
        ),
        "variables known": lambda program: mark(program.parser.variables),
        "several hosts (ranks)": lambda program: mark(program.parallel),
        "share of the memory": lambda program: program.limit_names.get("share", "-"),
        "recipe from a model's own files": lambda program: mark(program.template_marks()),
        "drafting": lambda program: program.limit_names.get("speculative", "-"),
        "kinds of models": lambda program: ", ".join(program.probes.kinds),
        "routes of clients": lambda program: str(len(program.routes.clients)),
        "metrics": lambda program: str(len(program.metrics) + len(program.graphs)),
        "boot caches": lambda program: mark(program.caches),
        "causes in its log": lambda program: str(_causes(program)),
        "proven": lambda program: f"unproven: {program.unproven}" if program.unproven else "yes",
    }
    body = [[name, *(row(program) for program in programs)] for name, row in rows.items()]
    return _HEAD + table(["", *(program.title for program in programs)], body) + "\n" + _TAIL


def _causes(program: Engine) -> int:
    checks = load(program.check_texts.with_name("causes.yaml"))
    return sum(bool(check.pattern) for check in checks.values())
