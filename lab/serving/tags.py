"""Contents of the lab's registry, as data: repositories, tags, and the image at each tag."""

from dataclasses import dataclass

ULTIMATE = "aeon-7/aeon-vllm-ultimate"
DFLASH = "aeon-7/vllm-dflash"
OMNI = "aeon-7/vllm-spark-omni-q36"
STOCK = "vllm/vllm-openai"
SGLANG = "lmsysorg/sglang"
LLAMACPP = "ggml-org/llama.cpp"
OPEN_WEBUI = "open-webui/open-webui"
"""Names of the repositories, as on the real images' own registries."""

BOTH = ("arm64", "amd64")


@dataclass(frozen=True)
class Tag:
    """An image and its names.

    version: version of the engine; fault: the built-in fault (see `fake_vllm.faults`);
        architectures: the entries of the image's index; docker_types: whether the documents have
        Docker's media types, as in older images, instead of OCI's; flavour: `aeon` or `stock`;
        entrypoint and environment: settings of the image, as in the real image.
    """

    names: tuple[str, ...]
    version: str
    fault: str = ""
    architectures: tuple[str, ...] = BOTH
    docker_types: bool = False
    repository: str = ULTIMATE
    flavour: str = "aeon"
    # Like the real image: without `entrypoint: vllm`, bash starts and reads the file bash.
    entrypoint: tuple[str, ...] = ("/bin/bash",)
    environment: tuple[str, ...] = ()


def _stock(names: tuple[str, ...], version: str, repository: str = STOCK, *program: str) -> Tag:
    entrypoint = program or ("vllm", "serve")
    return Tag(names, version, repository=repository, flavour="stock", entrypoint=entrypoint)


# Fakes of vLLM before 0.23 use the table of arguments of 0.23, and the fake of 0.28.0 uses the
# table of 0.24.
TAGS = (
    Tag(("2026-08-17-v0.27.1-slim", "latest"), "0.27.1"),
    Tag(("2026-07-01-v0.24.0",), "0.24.0"),
    Tag(("2026-06-18-v0.23.0-dflashfix",), "0.23.0"),
    Tag(("2026-06-11-pr41703",), "0.23.0", docker_types=True),
    Tag(("2026-06-04-pr44389",), "0.23.0", docker_types=True),
    Tag(("lab-never-healthy",), "0.24.0", fault="never-healthy"),
    Tag(("lab-wedge",), "0.24.0", fault="wedge"),
    Tag(("lab-crash",), "0.24.0", fault="crash-after=5"),
    Tag(("lab-oom",), "0.24.0", fault="oom"),
    Tag(("lab-garbage",), "0.24.0", fault="garbage"),
    Tag(("lab-arm64-only",), "0.24.0", architectures=("arm64",)),
    Tag(
        ("latest",),
        "0.23.0",
        repository=DFLASH,
        entrypoint=("/usr/local/bin/dflash-entrypoint.sh",),
    ),
    Tag(
        ("v1.2", "latest"),
        "0.23.0",
        repository=OMNI,
        environment=("VLLM_TEST_FORCE_FP8_MARLIN=1",),
    ),
    Tag(
        ("v2",),
        "0.23.0",
        repository=OMNI,
        environment=("VLLM_TEST_FORCE_FP8_MARLIN=0", "VLLM_USE_FLASHINFER_MOE_FP4=0"),
    ),
    Tag(("v0.5.20-cu130", "v0.5.20"), "0.5.20", repository=SGLANG, flavour="stock"),
    _stock(("server-cuda13-b11206",), "b11206", LLAMACPP, "/app/llama-server"),
    _stock(("qwen38",), "0.27.1"),
    _stock(("v0.32.0",), "0.32.0"),
    _stock(("v0.28.0", "v0.24.0"), "0.24.0"),
    _stock(("v0.20.1", "latest"), "0.23.0"),
    _stock(("lab",), "0.11.3", OPEN_WEBUI, "bash", "start.sh"),
)
