"""Resolution of a revision at a Hugging Face hub: its commit, and every file's size and hash.

Facts about a LoRA adapter come from its adapter_config.json and the header of its weights: both are
untrusted data, and values of an unexpected form count as missing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from sparkwright.catalog.data import Data, Straight
from sparkwright.catalog.entries import KvLayers
from sparkwright.documents import bounds, json_text
from sparkwright.host.fetch.request import FetchFile
from sparkwright.resolve import credentials, model_facts, pinned_text, references
from sparkwright.resolve.kv_cache import MOST, kv_layers, whole
from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.queries import Answer, Server, asking

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
#: Largest number of bytes and of values of a header: experts of a large model have some 40,000
#: matrices.
_MOST_BYTES, _MOST_VALUES = 8 << 20, 1_000_000
_RANKED = re.compile(r"(?<!experts)\.lora_A\.(\w+\.)?weight$")
#: Matrices whose input (lora_A), or whose output, is the body's hidden state.
_STATE = re.compile(r"\.(([qkv]|gate|up)_proj\.lora_A|(o|down)_proj\.lora_B)\.(\w+\.)?weight$")


class Lora(Data):
    """Facts about an adapter.

    Attributes:
        kind: the adapter's method in PEFT's terms; only ``LORA`` is served.
        base: name of the model that the adapter was made for; None without a name.
        rank: the largest rank of the adapter's matrices; 0 without matrices in safetensors.
        hidden_size: size of the base model's hidden states; None if the adapter's matrices do not
            show the size.
    """

    kind: model_facts.Word | None = None
    base: str | None = None
    rank: int = Field(default=0, strict=True, ge=0, le=MOST)
    hidden_size: int | None = Field(default=None, strict=True, ge=0, le=MOST)


def lora_of(
    files: Collection[str],
    small: Callable[[str], dict[str, Any]],
    piece: Callable[[str, int, int], bytes],
) -> Lora | None:
    """Facts about an adapter; None for a repository that is not an adapter.

    Args:
        files: paths of the repository.
        small: function that returns the object of a JSON file.
        piece: function that returns bytes of a file, given their offset and number.

    Raises:
        ValueError, TypeError, LookupError, Unusable: the files do not have the expected form.
    """
    if _CONFIG not in files:
        return None
    config, header = small(_CONFIG), {}
    if _WEIGHTS in files:
        length = min(int.from_bytes(piece(_WEIGHTS, 0, 8), "little"), _MOST_BYTES)
        header = json_text.load_object(piece(_WEIGHTS, 8, length), _MOST_VALUES)
    shapes = {name: entry["shape"] for name, entry in header.items() if "shape" in entry}
    ranks = [shape[0] for name, shape in shapes.items() if _RANKED.search(name)]
    widths = [each["lora_A" in name] for name, each in shapes.items() if _STATE.search(name)]
    ranks += [whole(config, "r") or 0, *(config.get("rank_pattern") or {}).values()] * bool(ranks)
    return Lora(
        kind=config.get("peft_type"),
        base=config.get("base_model_name_or_path"),
        rank=max(ranks, default=0),
        hidden_size=next(iter(widths), None),
    )


@cache  # once per run for all hosts
def ask_hub(
    endpoint: str, repository: str, revision: str, path: str, token: str | None,
    private: tuple[str, ...] = (),
) -> pinned_text.PinnedText:  # fmt: skip
    """Query a hub for a text file at a revision.

    Raises:
        UserError: the file does not exist, is not text, or the hub can't be reached.
    """
    where = f"file {repository}@{revision}/{path}"
    shown = credentials.over_https(token, endpoint)
    headers = {"Authorization": f"Bearer {shown}"} if shown is not None else {}
    with asking(where, f"the hub {endpoint}", answer="text", setting="hub_endpoint"):
        url = f"{endpoint}/{repository}/resolve/{quote(revision, '')}/{quote(path)}"
        answer = Server(endpoint, private).get(url, headers, bounds.LONGEST)
        commit = answer.headers.get("X-Repo-Commit", revision)
        if answer.status != 200:
            raise MESSAGES.refusal("no-hub-file", where, status=answer.status)
        digest = hashlib.sha256(answer.content).hexdigest()
        return pinned_text.PinnedText(commit, digest, answer.content.decode())


if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

#: A file below a model's directory.
Path = Annotated[
    str,
    Field(pattern=r"^[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*$", max_length=1024),
    Straight,
]
#: Largest number of bytes and of values of a model's data with every file: some 50,000 files.
MOST_BYTES, MOST_VALUES = 16 << 20, 1_000_000
#: Files with a model's serving settings.
_READ = ("config.json", "generation_config.json", "tokenizer_config.json")
_TEMPLATE = "chat_template.jinja"


@dataclass(frozen=True, config=ConfigDict(extra="forbid", defer_build=True))
class PinnedFile:
    """Size and hash of a file: git's own hash for small files, sha256 for all others."""

    size: references.Size
    sha256: references.Sha256 | None = None
    blob: references.Commit | None = None


@dataclass(frozen=True, config=ConfigDict(extra="forbid", defer_build=True))
class ResolvedModel:
    """A resolved revision; the lock's entry for a model, without the repository.

    Attributes:
        commit: 40 hex digits.
        date: day of the commit, if the hub reports it.
        files: file by path.
        kv: layers that keep keys and values, from the commit's config.json.
        facts: facts from the commit's small files; None if they were not requested.
        recipe: recipe in a registry of vLLM's own recipes, if any.
        hidden_size: size of a token's hidden state, from the commit's config.json.
        lora: facts about an adapter; None for a repository of another kind.
    """

    repository: Annotated[str, Field(exclude=True)]
    commit: references.Commit
    date: dt.date | None = None
    files: dict[Path, PinnedFile] = Field(default_factory=dict)
    kv: tuple[KvLayers, ...] = ()
    facts: model_facts.ModelFacts | None = None
    recipe: model_facts.ModelRecipe | None = None
    hidden_size: references.Size | None = None
    lora: Lora | None = None

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files.values())

    @property
    def to_fetch(self) -> tuple[FetchFile, ...]:
        """The files in the form of the fetch program."""
        return tuple(
            FetchFile(path, file.size, file.sha256, file.blob) for path, file in self.files.items()
        )

    @property
    def part(self) -> str:
        """Name of the repository's GGUF files; empty for a whole repository."""
        if not (header := self.facts and self.facts.gguf):
            return ""
        files = f"{header.file},{header.projector or ''}"
        return f"{header.quantization or 'gguf'}-{hashlib.sha256(files.encode()).hexdigest()[:8]}"

    @property
    def directory(self) -> str:
        """The model's path below the models root: ``org--name/<commit>``; a selection of a
        repository has ``org--name--part/<commit>``, so that each choice is complete by itself.
        """
        return directory_of(self.repository, self.commit, self.part)

    @property
    def python_files(self) -> tuple[str, ...]:
        """Paths of the model's files that Python could import."""
        return tuple(path for path in self.files if path.endswith(".py"))


def directory_of(repository: str, commit: str, part: str = "") -> str:
    """Path of a model below a models root."""
    return f"{repository.replace('/', '--')}{part and '--'}{part}/{commit}"


def resolve_model(
    endpoint: str,
    repository: str,
    revision: str,
    token: str | None,
    *,
    marks: Collection[str] | None = None,
    private: Sequence[str] = (),
    choice: str = "",
    gguf: bool = False,
) -> ResolvedModel:
    """Resolve a revision to a commit and its files.

    The token is sent to the endpoint's own host only: clients drop it on a redirect to another
    host.

    Args:
        marks: texts to search for in the chat template; with marks, the small files with serving
            settings are also read.
        private: servers in private networks to which the hub may redirect.
        choice: choice in a repository of GGUF files, as in ``ModelReference``; the result then has
            only these files.
        gguf: whether GGUF files take precedence over other formats.

    Raises:
        UserError: the hub refuses or can't be reached, with a remedy for 401, 403 and 404; with
            ``marks`` also for an unusable file of the repository.
    """
    from huggingface_hub import ModelInfo  # a locked run sends no request, and saves 0.1 s

    where = f"model {repository}@{revision}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with asking(where, f"the hub {endpoint}", answer="a model's data", setting="hub_endpoint"):
        server = Server(endpoint, private)
        url = f"{endpoint}/api/models/{repository}/revision/{quote(revision, safe='')}?blobs=True"
        answer = server.get(url, headers, MOST_BYTES)
        if answer.status != 200:
            facts = {"page": f"{endpoint}/{repository}", "status": answer.status}
            raise MESSAGES.refusal(_meaning(answer, bool(token)), where, **facts)
        info = ModelInfo(**answer.json(MOST_VALUES))  # type: ignore[no-untyped-call]
        model = _parse(where, repository, info)

        def content(name: str, own: Mapping[str, str] = MappingProxyType({})) -> Answer:
            url = f"{endpoint}/{repository}/resolve/{model.commit}/{quote(name)}"
            return server.get(url, {**headers, **own})

        def small(name: str) -> bytes | None:
            answer = content(name) if name in model.files else None
            return answer.content if answer and answer.status == 200 else None

        def piece(name: str, start: int, length: int) -> bytes:
            answer = content(name, {"Range": f"bytes={start}-{start + length - 1}"})
            if answer.status == 206:
                return answer.content
            return answer.required().content[start : start + length]

        named = choice and not choice.endswith("GiB")
        if named or (marks is not None and _serves_gguf(model, gguf)):
            return _with_headers(model, choice, piece, info, where, marks or ())

        if marks is not None:
            return _with_facts(model, small, info, where, marks)
        # Only checks depend on the adapter and the cache.
        with suppress(OSError, ValueError, TypeError, LookupError, AttributeError, bounds.Unusable):
            model = _measured(model, _loaded(small("config.json")))
            lora = lora_of(model.files, lambda name: _loaded(small(name)), piece)
            return replace(model, lora=lora)
        return model


def _measured(model: ResolvedModel, config: dict[str, Any]) -> ResolvedModel:
    text = config.get("text_config")
    size = whole(text if isinstance(text, dict) else config, "hidden_size")
    return replace(model, kv=kv_layers(config), hidden_size=size)


def _loaded(text: bytes | None) -> dict[str, Any]:
    return json_text.load_object(text, MOST_VALUES) if text is not None else {}


def _with_facts(
    model: ResolvedModel,
    small: Callable[[str], bytes | None],
    info: ModelInfo,
    where: str,
    marks: Collection[str],
) -> ResolvedModel:
    """The model with facts from its own small files."""
    files: list[dict[str, Any]] = []
    try:
        for name in _READ:
            files.append(_loaded(small(name)))
        name = _TEMPLATE
        template = small(name)
    except bounds.Unusable as error:
        raise MESSAGES.refusal("unusable-file", where, file=name, problem=error.fault) from None
    facts = model_facts.facts_of(
        *files,
        marks=marks,
        template=template.decode("utf-8", "replace") if template else None,
        hf_quant="hf_quant_config.json" in model.files,
        license=info.card_data.license if info.card_data else None,
        task=info.pipeline_tag,
    )
    return replace(_measured(model, files[0]), facts=facts)


def _serves_gguf(model: ResolvedModel, preferred: bool) -> bool:
    suffixes = {name.rpartition(".")[2] for name in model.files}
    return "gguf" in suffixes and (preferred or "safetensors" not in suffixes)


def _with_headers(
    model: ResolvedModel,
    choice: str,
    piece: Callable[[str, int, int], bytes],
    info: ModelInfo,
    where: str,
    marks: Collection[str],
) -> ResolvedModel:
    """The model with only the served GGUF files, and facts from their headers."""
    from sparkwright.resolve.gguf import read_header
    from sparkwright.resolve.gguf_facts import facts_of_headers
    from sparkwright.resolve.gguf_files import Facts, GgufModel, choose

    sizes = {path: file.size for path, file in model.files.items()}
    name = ""

    def read(gguf: GgufModel, projector: str | None) -> Facts:
        nonlocal name
        headers = []
        for name in gguf.parts:
            headers.append(read_header(partial(piece, name), sizes[name]))
        name = gguf.parts[0]
        image = projector, sizes.get(projector or "", 0)
        terms = info.card_data.license if info.card_data else None
        return facts_of_headers(headers, file=name, projector=image, marks=marks, license=terms)

    try:
        paths, (facts, kv) = choose(sizes, choice, read)
    except bounds.Unusable as error:
        problem = ": ".join(filter(None, (name, error.fault)))
        raise MESSAGES.refusal("no-gguf", where, problem=problem, remedy=error.remedy) from None
    return replace(model, files={path: model.files[path] for path in paths}, kv=kv, facts=facts)


def _parse(where: str, repository: str, info: ModelInfo) -> ResolvedModel:
    files = {}
    for sibling in info.siblings or ():
        name = str(sibling.rfilename)
        if not name.isprintable() or {"", ".", ".."} & set(name.split("/")):
            raise MESSAGES.refusal("leading-out", where, file=name[:80])
        large = sibling.lfs
        size = int(large.size if large else sibling.size or 0)
        files[name] = PinnedFile(size, large.sha256 if large else None, sibling.blob_id)
    day = info.last_modified.date() if info.last_modified else None
    return ResolvedModel(repository, str(info.sha), day, dict(sorted(files.items())))


def _meaning(answer: Answer, with_token: bool) -> str:
    """Return the id of the error message for an answer."""
    code, status = answer.headers.get("X-Error-Code", ""), answer.status
    if code == "GatedRepo" or status == 403:
        return "GatedRepo"
    if status == 401 and with_token and code != "RepoNotFound":
        return "refused-token"
    if code == "RevisionNotFound":
        return code
    return "unknown-repository" if status in (401, 404) else "hub-error"
