"""Which of a repository's GGUF files are served, and what a hub is asked for that."""

import json
import re
from typing import Any

import pytest

from sparkwright.catalog.entries import KvLayers
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import gguf_files
from sparkwright.resolve.gguf_files import GgufModel, choose
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.model_facts import ModelFacts
from sparkwright.text.sizes import GIB
from tests.gguf import MODEL, gguf
from tests.host.serving import Handler, listening
from tests.tables import Tables

cases = Tables(__file__)


def chosen(files: dict[str, float], choice: str) -> tuple[str, ...]:
    """Paths that are served; 4 GiB of 8192 tokens' keys and values."""
    sizes = {path: round(size * GIB) for path, size in files.items()}
    kv = (KvLayers(layers=128, heads=8, head_dim=128),)

    def read(model: GgufModel, projector: str | None) -> gguf_files.Facts:
        return ModelFacts(context=131072), kv

    return choose(sizes, choice, read)[0]


@cases("files", "choice", "paths")
def test_a_choice_leads_to_files(files: str, choice: str, paths: list[str]) -> None:
    assert list(chosen(cases.data["REPOSITORIES"][files], choice)) == paths


@cases("files", "choice", "message")
def test_a_choice_that_leads_nowhere_lists_what_there_is(
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
    """The model as a hub with these files has it, and the ranges that it was asked for."""
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
def test_a_quantization_has_its_own_files_alone(status: int) -> None:
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


def test_an_engine_of_gguf_files_gets_them_of_a_repository_that_has_safetensors_too() -> None:
    files = {"m.safetensors": b"x", "m-Q4_K_M.gguf": FILES["m-Q4_K_M.gguf"]}
    model, _ = resolved(files, "12.0GiB", preferred=True)
    assert list(model.files) == ["m-Q4_K_M.gguf"]


def test_each_choice_has_a_directory_of_its_own() -> None:
    choices = ["Q4_K_M", "m-Q4_K_M.gguf,none", "Q8_0"]
    assert len({resolved(FILES, choice)[0].directory for choice in choices}) == 3


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"m-Q4_K_M.gguf": b"\x80\x04pickle"}, "m-Q4_K_M.gguf: it is no GGUF file"),
        ({"m-Q4_K_M.gguf": gguf()[:300]}, "m-Q4_K_M.gguf: it is cut off"),
        ({"m-Q4_K_M.gguf": gguf({**MODEL, "general.type": "imatrix"})}, "it is no model"),
        ({"m.safetensors": b"x"}, "no GGUF file is Q4_K_M; it has none"),
    ],
)
def test_a_file_that_can_not_be_served_is_one_message(
    files: dict[str, bytes], problem: str
) -> None:
    with pytest.raises(UserError) as error:
        resolved(files, "Q4_K_M")
    assert problem in str(error.value)
    assert len(error.value.findings) == 1
