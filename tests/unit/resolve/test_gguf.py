"""Headers of GGUF files, and the choice of a file of a repository."""

import json
import re
import struct
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from sparkwright.catalog.entries import KvLayers
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import gguf_files
from sparkwright.resolve.gguf import Header, read_header
from sparkwright.resolve.gguf_facts import facts_of_headers
from sparkwright.resolve.gguf_files import GgufModel, choose
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.model_facts import ModelFacts
from sparkwright.text.sizes import GIB
from tests.gguf_headers import MODEL, TENSORS, gguf, text, value
from tests.host.serving import Handler, listening
from tests.tables import Tables

cases = Tables(__file__)


def read(data: bytes, size: int | None = None) -> Header:
    """The header of a file, fetched from its beginning."""
    return read_header(lambda at, length: data[at : at + length], size or len(data))


def facts(
    values: dict[str, Any] | None = None, *more: bytes, **tensors: Any
) -> tuple[ModelFacts, tuple[KvLayers, ...]]:
    """Facts of a model with these changes; None removes a value."""
    merged = {key: item for key, item in {**MODEL, **(values or {})}.items() if item is not None}
    headers = [read(gguf(merged, tensors or TENSORS)), *map(read, more)]
    projector = "mmproj-F16.gguf", 99
    return facts_of_headers(headers, file="m.gguf", projector=projector, marks=["<tool_call>"])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_both_versions_and_byte_orders_are_read(version: int, order: str) -> None:
    header = read(gguf(version=version, order=order))
    assert header.values["qwen3.block_count"] == 4
    assert header.tensors["blk.3.ffn_up.weight"] == (4096, 4096)
    assert "tokenizer.ggml.tokens" not in header.values


def test_a_header_determines_the_settings_of_a_model() -> None:
    result, kv = facts()
    assert result.gguf is not None
    assert result.gguf.model_dump(exclude_defaults=True) == cases.data["FACTS"] | {
        "layer_bytes": (4096,) * 4,
    }  # fmt: skip
    assert (result.context, result.quantization, result.vision) == (32768, "Q4_K_M", True)
    assert (result.chat_template, result.template) == (True, ("<tool_call>",))
    assert kv == (KvLayers(layers=4, heads=2, head_dim=64),)


@cases("values", "layers")
def test_layers_with_a_kv_cache_are_read_from_a_header(
    values: dict[str, Any], layers: list[list[int | None]]
) -> None:
    listed = {key: tuple(item) if isinstance(item, list) else item for key, item in values.items()}
    _, kv = facts(listed)
    assert [[kind.layers, kind.heads, kind.head_dim, kind.window] for kind in kv] == layers


def test_tensors_of_every_part_of_a_split_file_are_counted() -> None:
    result, _ = facts({}, gguf({}, {"blk.1.ffn_down_exps.weight": (64, 4), "output.weight": (32,)}))
    assert result.gguf is not None
    assert result.gguf.layer_bytes == (4096, 4096 + 256, 4096, 4096)
    assert (result.gguf.expert_bytes, result.gguf.other_bytes) == (256, 2048 + 32)


@cases("values", "problem")
def test_values_that_contradict_each_other_are_refused(
    values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Unusable, match=problem):
        facts({key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def _entry(kind: int, data: bytes, key: str = "x") -> bytes:
    return gguf(MODEL, TENSORS, more=text(key) + struct.pack("<I", kind) + data)


HUGE = struct.pack("<Q", 2**63)
HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "another format": lambda: b"PK\x03\x04" + bytes(99),
    "version 1": lambda: gguf(version=1),
    "a version of later": lambda: gguf(version=4),
    "2^63 entries": lambda: gguf()[:16] + HUGE + gguf()[24:],
    "2^63 tensors": lambda: gguf()[:8] + HUGE + gguf()[16:],
    "more tensors than bytes": lambda: gguf()[:8] + struct.pack("<Q", 60000) + gguf()[16:],
    "a text of 2^63 bytes": lambda: _entry(8, HUGE),
    "a text of -1 bytes": lambda: _entry(8, struct.pack("<q", -1)),
    "a key of a mebibyte": lambda: _entry(4, bytes(4), "k" * (1 << 20)),
    "a list of 2^63 numbers": lambda: _entry(9, struct.pack("<I", 12) + HUGE),
    "a list of 2^63 texts": lambda: _entry(9, struct.pack("<I", 8) + HUGE),
    "a list of lists": lambda: _entry(9, struct.pack("<IQ", 9, 1) * 50_000),
    "a list of no lists": lambda: _entry(9, struct.pack("<IQ", 9, 0)),
    "a kind that is not known": lambda: _entry(13, bytes(8)),
    "a key twice": lambda: _entry(4, bytes(4), "general.architecture"),
    "two tensors at one place": lambda: gguf({**MODEL}, {"a": (0,), "b": (32,)}),
    "a tensor outside of the file": lambda: gguf()[:-64],
    "more numbers than the bytes hold": lambda: gguf(MODEL, {"a": (2**62, 2**62, 2**62)}, cut=True),
    "2^31 dimensions": lambda: gguf().replace(
        text("token_embd.weight") + struct.pack("<I", 2),
        text("token_embd.weight") + struct.pack("<I", 2**31),
    ),
    "an alignment of 3": lambda: gguf({**MODEL, "general.alignment": 3}),
    "an alignment of 0": lambda: gguf({**MODEL, "general.alignment": 0}),
    "an alignment that is a text": lambda: gguf({**MODEL, "general.alignment": "\x1b[2J"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_causes_one_message(name: str) -> None:
    data = HOSTILE[name]()
    tracemalloc.start()
    began = time.monotonic()
    with pytest.raises(Unusable) as error:
        read(data)
    seconds, (_, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 100
    assert peak < (16 << 20)
    assert seconds < 2


def test_an_endless_header_is_read_up_to_a_limit() -> None:
    """A server that invents as many bytes as requested."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text("x") + struct.pack("<IIQ", 9, 8, 2**40)
    fetched = []

    def fetch(at: int, length: int) -> bytes:
        fetched.append(length)
        return (head + bytes(length))[at : at + length] if at == 0 else bytes(length)

    with pytest.raises(Unusable, match="more than 64 MiB"):
        read_header(fetch, 2**45)
    assert sum(fetched) <= 64 << 20
    assert max(fetched) <= 8 << 20


def test_an_answer_shorter_than_the_range_is_cut_off() -> None:
    with pytest.raises(Unusable, match="cut off"):
        read(gguf()[:40], 4096)


def test_every_truncation_is_refused() -> None:
    data = gguf()
    for length in range(len(data)):
        with pytest.raises(Unusable):
            read(data[:length])


def test_control_sequences_in_values_are_not_kept() -> None:
    escape = "\x1b]0;owned\x07"
    result, _ = facts({"general.name": escape})
    assert escape not in repr(result)
    with pytest.raises(Unusable) as error:
        facts({"general.architecture": escape, f"{escape}.block_count": 4})
    assert str(error.value).isprintable()
    assert value(escape) in gguf({**MODEL, "general.name": escape})


def chosen(files: dict[str, float], choice: str) -> tuple[str, ...]:
    """Paths of the chosen files; the KV cache of 8192 tokens takes 4 GiB."""
    sizes = {path: round(size * GIB) for path, size in files.items()}
    kv = (KvLayers(layers=128, heads=8, head_dim=128),)

    def read(model: GgufModel, projector: str | None) -> gguf_files.Facts:
        return ModelFacts(context=131072), kv

    return choose(sizes, choice, read)[0]


@cases("files", "choice", "paths")
def test_a_choice_selects_files(files: str, choice: str, paths: list[str]) -> None:
    assert list(chosen(cases.data["REPOSITORIES"][files], choice)) == paths


@cases("files", "choice", "message")
def test_an_unknown_choice_lists_the_existing_choices(
    files: str, choice: str, message: str
) -> None:
    with pytest.raises(Unusable) as error:
        chosen(cases.data["REPOSITORIES"][files], choice)
    assert message in str(error.value)


class Hub(Handler):
    """A hub with one repository that answers ranges."""

    files: dict[str, bytes]
    ranges: list[str]
    status = 206

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):
            siblings = [
                {
                    "rfilename": name,
                    "lfs": {"size": len(data), "sha256": "a" * 64, "pointerSize": 9},
                }
                for name, data in self.files.items()
            ]
            document = {"id": "org/m", "sha": "c" * 40, "siblings": siblings}
            self.reply(200, json.dumps(document | {"cardData": {"license": "mit"}}).encode(), {})
            return
        data = self.files[self.path.partition("c" * 40 + "/")[2]]
        start, end = map(int, re.findall(r"\d+", self.headers["Range"]))
        self.ranges.append(f"{self.path.rpartition('/')[2]} {start}")
        body = data[start : end + 1] if self.status == 206 else data
        self.reply(self.status, body, {})


def resolved(
    files: dict[str, bytes], choice: str, *, preferred: bool = False, **server: Any
) -> tuple[ResolvedModel, list[str]]:
    """The model from a hub with these files, and the requested ranges."""
    ranges: list[str] = []
    with listening(Hub, files=files, ranges=ranges, **server) as port:
        endpoint = f"http://127.0.0.1:{port}"
        options: dict[str, Any] = {"marks": (), "choice": choice, "gguf": preferred}
        return resolve_model(endpoint, "org/m", "main", None, **options), ranges


PARTS = [f"Q8_0/m-Q8_0-0000{part}-of-00002.gguf" for part in (1, 2)]
FILES = {
    "README.md": b"x", "m-Q4_K_M.gguf": gguf(), "mmproj-F16.gguf": b"GGUF",
    PARTS[0]: gguf(), PARTS[1]: gguf({}, {"output.weight": (64,)}),
}  # fmt: skip


@pytest.mark.parametrize("status", [206, 200])
def test_a_quantization_selects_only_its_own_files(status: int) -> None:
    model, ranges = resolved(FILES, "q4_k_m", status=status)
    assert list(model.files) == ["m-Q4_K_M.gguf", "mmproj-F16.gguf"]
    assert model.facts is not None
    assert model.facts.gguf is not None
    assert (model.facts.gguf.projector, model.facts.license) == ("mmproj-F16.gguf", "mit")
    assert (len(model.kv), ranges) == (1, ["m-Q4_K_M.gguf 0"])
    assert re.fullmatch(r"org--m--Q4_K_M-[0-9a-f]{8}/c{40}", model.directory)


def test_every_part_of_a_split_file_is_read_and_fetched() -> None:
    model, ranges = resolved(FILES, f"{PARTS[0]},none")
    assert list(model.files) == PARTS
    assert len(ranges) == 2
    assert model.facts is not None
    assert model.facts.gguf is not None
    assert model.facts.gguf.other_bytes == 2048 + 64


def test_llama_cpp_gets_gguf_files_of_a_mixed_repository() -> None:
    files = {"m.safetensors": b"x", "m-Q4_K_M.gguf": FILES["m-Q4_K_M.gguf"]}
    model, _ = resolved(files, "12.0GiB", preferred=True)
    assert list(model.files) == ["m-Q4_K_M.gguf"]


def test_each_choice_has_its_own_directory() -> None:
    choices = ["Q4_K_M", "m-Q4_K_M.gguf,none", "Q8_0"]
    assert len({resolved(FILES, choice)[0].directory for choice in choices}) == 3


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"m-Q4_K_M.gguf": b"\x80\x04pickle"}, "m-Q4_K_M.gguf: it is not a GGUF file"),
        ({"m-Q4_K_M.gguf": gguf()[:300]}, "m-Q4_K_M.gguf: it is cut off"),
        ({"m-Q4_K_M.gguf": gguf({**MODEL, "general.type": "imatrix"})}, "it is not a model"),
        ({"m.safetensors": b"x"}, "no GGUF file is Q4_K_M; it has none"),
    ],
)
def test_an_unusable_file_causes_one_message(files: dict[str, bytes], problem: str) -> None:
    with pytest.raises(UserError) as error:
        resolved(files, "Q4_K_M")
    assert problem in str(error.value)
    assert len(error.value.findings) == 1
