"""The entries that services are made of: images, models and recipes, and the cards' claims about
them.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from sparkwright.catalog import containers, data
from sparkwright.catalog.file_entries import File as File
from sparkwright.catalog.file_entries import Patch, SecretName
from sparkwright.catalog.gguf import Gguf, GgufFile
from sparkwright.catalog.issues import Issue
from sparkwright.text.shipped_yaml import beside

_IMAGE = beside(__file__, "image_defaults.yaml")


class GpuClaim(data.Data):
    """A card's claim about a GPU; a recipe's ``needs`` decide where this tool runs the recipe.

    Attributes:
        gpu: the GPU's name on the card.
        claim: ``validated``: run by the card's author; ``listed``: named as fitting; ``untested``:
            expected to fit; ``rebuild``: needs a separate image; ``no``: fails.
        note: the card's remark on the claim.
    """

    gpu: str
    claim: Literal["validated", "listed", "untested", "rebuild", "no"]
    note: str | None = None
    source: str = data.OWN


class License(data.Data):
    """Terms of a publication.

    Attributes:
        name: an SPDX identifier if possible; None if no source names a licence.
        note: parts with other terms, and sources that disagree.
    """

    name: str | None
    note: str | None = None
    source: str = data.OWN


class Duties(data.Data):
    """Duties that a card gives operators of an uncensored model, in this project's words.

    Attributes:
        duties: one line per duty.
    """

    duties: tuple[str, ...]
    source: str = data.OWN


class Switch(data.Data):
    """A key of a request's ``chat_template_kwargs``.

    Attributes:
        key: its name.
        value: the card's value.
        meaning: effect of the value.
    """

    key: str
    value: data.Scalar
    meaning: str
    source: str = data.OWN


class ImageVariable(data.Data):
    """An environment variable of an image, with the documentation of its card.

    Attributes:
        name: name of the variable.
        default: value if the variable is unset; None if the card gives no value, or the variable is
            required.
        meaning: effect of the variable, and the values that the card names.
    """

    name: str
    default: str | None = None
    meaning: str
    source: str = data.OWN


class OtherImage(data.Data):
    """A further image that a card names without a command.

    Attributes:
        reference: image with tag.
        remark: the card's remark on the image.
    """

    reference: str
    remark: str
    source: str = data.OWN


class Ran(data.Data):
    """A run of a recipe on real hardware, deployed with this tool.

    Attributes:
        gpu: the GPU of the run.
        date: the day.
        outcome: the steps of the run, and their outcome.
        source: author of the run, and its publication.
    """

    gpu: str
    date: dt.date
    outcome: str
    source: str = data.OWN


Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class Tag(data.Data):
    """A tag of an image: its contents and their source.

    Attributes:
        version: version of the engine inside; ``None`` if no card gives it.
        digest: the card's own pin of the tag.
        names: other tags that once pointed to this content, such as ``latest``.
        rollback: the tag that the card names for a rollback.
        architectures: the card's claim; the registry's manifest decides.
        components: further program in the image -> its version on the card.
        adds, fixes, breaks: differences from the previous tag, as text; checkable breakage is in
            the image's issues.
        date: day of the push, if a card names it.
    """

    date: dt.date | None = None
    version: str | None
    digest: Digest | None = None
    names: tuple[str, ...] = ()
    rollback: str | None = None
    architectures: tuple[Literal["arm64", "amd64"], ...] = ("arm64",)
    components: dict[str, str] = Field(default_factory=dict)
    adds: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    source: str = data.OWN


class ImageSize(data.Data):
    """Sizes in GiB, for checks made before the registry is queried.

    Attributes:
        pull_gib: size of the download.
        unpacked_gib: size on the disk.
        source: author of the figure, or the basis of an estimate.
    """

    pull_gib: data.Gib
    unpacked_gib: data.Gib
    source: str | None = None


class Build(data.Data):
    """An image that is built on the host from a git repository at a pinned commit.

    Attributes:
        context: https address of the repository; the image's tag is a revision in the repository.
        directory: the folder with the Dockerfile.
        base: the catalog's entry of the image that the Dockerfile starts from.
        base_tag: tag of the base image in the Dockerfile.
    """

    context: str
    directory: str
    base: data.Name
    base_tag: str


class Variables(data.Data):
    """Names of the environment variables of an image that does not take arguments.

    Every argument without a variable goes to ``extra_arguments``, verbatim.

    Attributes:
        model, drafter: path of the body, and of the drafter.
        num_speculative_tokens: draft tokens per step.
        served_name: the main served name.
        extra_arguments: the variable for arguments without their own variable.
        arguments: ``vllm serve`` argument -> its variable.
        defaults: the entry point's values of arguments if their variables are not set.
        sets: flags that the entry point always sets; sparkwright removes them for a service without
            these flags.
    """

    model: str
    drafter: str
    num_speculative_tokens: str
    served_name: str
    extra_arguments: str
    arguments: dict[str, str]
    defaults: dict[str, data.Scalar] = Field(default_factory=dict)
    sets: tuple[str, ...] = ()


class Image(data.Data):
    """A container image repository and its tags.

    Attributes:
        repository: registry host and path, without a tag.
        size: sizes of a pull and on the disk.
        newest_tag: the tag of services that name no tag.
        tags: tag -> its content.
        engine: the engine inside, a name of ``sparkwright.engines``.
        entrypoint: the engine's program; for an image that is driven by variables, the path of the
            image's own entry point, which starts the engine's program by name.
        variables: variables of an image that is driven by its environment; None for other images.
        build: source of an image that no registry has; None for other images.
        writable: directories that the image's programs write to, which stay writable under
            ``hardening: strict``.
        known_files: paths of the image's chat templates and plugins, which arguments may name;
            ``*`` stands for any characters.
        gpus: the card's claims about GPUs.
        license: terms of the image's content.
        duties: the card's demands on an operator.
        settings: variables that the card documents in addition to ``variables``.
        beside: other images that the card names.
        issues: known mistakes with this image, by tag.
    """

    kind: Literal["image"]
    name: data.Name
    repository: str
    engine: str = _IMAGE["engine"]
    entrypoint: str = _IMAGE["entrypoint"]
    size: ImageSize
    newest_tag: str
    tags: dict[str, Tag] = Field(min_length=1)
    variables: Variables | None = None
    build: Build | None = None
    writable: tuple[containers.Place, ...] = tuple(_IMAGE["writable"])
    known_files: tuple[str, ...] = ()
    gpus: tuple[GpuClaim, ...] = ()
    license: License | None = None
    duties: Duties | None = None
    settings: tuple[ImageVariable, ...] = ()
    beside: tuple[OtherImage, ...] = ()
    issues: tuple[Issue, ...] = ()

    @model_validator(mode="after")
    def _own_entry_point_is_named(self) -> Image:
        if self.variables and not self.entrypoint.startswith("/"):
            raise ValueError(
                "an image that is driven by variables needs the path of its ENTRYPOINT in "
                "'entrypoint' (docker inspect shows the path): this program gets the API key"
            )
        return self


#: Quantization of weights; ``bf16`` means none, and ``gguf`` is a file with its own header.
Format = Literal[
    "compressed-tensors", "modelopt", "fp8", "awq", "gptq", "autoround", "mxfp4", "bf16", "gguf"
]
#: Formats of models in safetensors.
SAFETENSORS = tuple(form for form in get_args(Format) if form != "gguf")

#: Abilities of a model besides text; ``thinking-only`` always thinks first.
Capability = Literal["image", "video", "tools", "thinking", "thinking-only", "mtp"]


#: The kind of requests that a model is made for.
Task = Literal[
    "chat", "completion", "embedding", "rerank", "score", "transcription", "speech", "image"
]


class KvLayers(data.Data):
    """Layers of one kind that keep keys and values.

    Attributes:
        layers: number of layers.
        heads: heads of keys and values in each layer.
        head_dim: dimension of each head.
        window: tokens that sliding-window layers keep; None for full attention.
    """

    layers: int = Field(gt=0)
    heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    window: int | None = Field(default=None, gt=0)

    def numbers(self, tokens: int) -> int:
        """Count of numbers in the keys of a sequence of this length; the values have as many."""
        return self.layers * self.heads * self.head_dim * min(tokens, self.window or tokens)


class Sampling(data.Data):
    """Sampling that the model's authors advise for a mode and a use.

    Attributes:
        mode: whether the model thinks first.
        use: kind of work.
        temperature, top_p, top_k, presence_penalty: values for clients; None leaves a value out.
    """

    mode: Literal["thinking", "instruct", "any"]
    use: Literal["general", "coding", "math", "fast-drafting", "any"]
    temperature: float
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None


class ContentCheck(data.Data):
    """Check of a model's headers and small files before the model is used.

    Attributes:
        id: the check's name in messages.
        why: consequence of a failed check.
        absent, present: prefix that no tensor's name has, or that some tensor's name has.
        file, key, contains: a list in a JSON file of the repository that holds these values.
    """

    id: data.Name
    why: str
    source: str = data.OWN
    absent: str | None = None
    present: str | None = None
    file: str | None = None
    key: str | None = None
    contains: tuple[int | str, ...] | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> ContentCheck:
        listed = (self.file, self.key, self.contains)
        ways = [self.absent, self.present, None if None in listed else listed]
        if sum(way is not None for way in ways) != 1 or (None in listed and any(listed)):
            raise ValueError("set 'absent', 'present', or 'file' with 'key' and 'contains'")
        return self


class Model(data.Data):
    """A Hugging Face repository at a revision.

    Attributes:
        repository: the repository's name on the hub, ``organisation/name``.
        family: name of the model's family, which rules and drafters refer to, e.g. ``qwen3.6-27b``.
        task: kind of requests that the model is made for; ``completion`` for a base model.
        role: ``body`` computes the answer; ``drafter`` proposes its tokens.
        revision: branch, tag or commit.
        not_before: commits older than this day do not work.
        format: quantization format; None if no card gives it.
        file: path of the served file in a repository of GGUF files. Only this file and the other
            parts of a split file (``-00001-of-00003.gguf``) are downloaded.
        projector: path of the GGUF file for image input (mmproj).
        gguf: facts of the served file's header. A run reads the header, and replaces the value of
            this entry.
        architecture: the class in config.json, by which vLLM finds the implementation; None
            leaves the class unchecked.
        size_gib: size of all files together, from the card's GB; None if unknown.
        loaded_gib: memory of the loaded weights, from the card's GB.
        context: tokens that the model was made for.
        capabilities: abilities in addition to text.
        kv: layers that keep keys and values; empty if no card gives them.
        hybrid: whether the other layers keep a state instead (Gated DeltaNet, Mamba), which changes
            vLLM's defaults.
        pairs_with: drafters made for this body.
        sampling: the authors' advice on sampling.
        status, reason: the cards' status of the model, and the reason for a failure.
        known_bad: older revisions and their faults, as text.
        code: reviewed Python files of the repository, which ``trust_remote_code`` may run.
        switches: settings of the chat template in a request.
        gpus: the card's claims about GPUs.
        license: terms of the model's publication.
        duties: the card's demands on an operator.
        checks: required content of the files, which also reveals a bad revision.
        issues: known mistakes with this model.
    """

    kind: Literal["model"]
    name: data.Name
    repository: data.Repository
    family: data.Name
    revision: data.Revision = "main"
    not_before: dt.date | None = None
    role: Literal["body", "drafter"]
    task: Task = "chat"
    format: Format | None
    file: GgufFile | None = None
    projector: GgufFile | None = None
    gguf: Gguf | None = None
    architecture: str | None = None
    size_gib: data.Gib | None = None
    loaded_gib: data.Gib | None = None
    context: int | None = Field(default=None, gt=0)
    capabilities: tuple[Capability, ...] = ()
    kv: tuple[KvLayers, ...] = ()
    hybrid: bool = False
    pairs_with: tuple[data.Name, ...] = ()
    sampling: tuple[Sampling, ...] = ()
    status: data.Status = "works"
    reason: str | None = None
    known_bad: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    switches: tuple[Switch, ...] = ()
    gpus: tuple[GpuClaim, ...] = ()
    license: License | None = None
    duties: Duties | None = None
    checks: tuple[ContentCheck, ...] = ()
    issues: tuple[Issue, ...] = ()
    source: str = data.OWN
    date: dt.date | None = None

    @model_validator(mode="after")
    def _gguf_names_its_file(self) -> Model:
        if (self.format == "gguf") is (self.file is None):
            raise ValueError("'file' is required with 'format: gguf', and allowed only there")
        if self.projector and self.file is None:
            raise ValueError("'projector' needs 'format: gguf' and 'file'")
        return self

    @property
    def choice(self) -> str:
        """The served GGUF files, as a reference names them; empty for other formats."""
        return f"{self.file},{self.projector or 'none'}" if self.file else ""


class Mounted(data.Data):
    """A model and its path in the container.

    Attributes:
        model: an entry of the catalog.
        mount: absolute path in the container, for use in the arguments.
    """

    model: data.Name
    mount: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._/-]+$"), data.Straight]


class Adapter(data.Data):
    """A LoRA adapter, which clients request as a separate model.

    Attributes:
        name: name for clients.
        model: the adapter's Hugging Face repository.
        revision: branch, tag or commit.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
    model: data.Repository
    revision: data.Revision = "main"


def _of_a_disk(path: str) -> str:
    if path.split("/")[1] in _NO_DISK:
        raise ValueError(
            f"{path} is a system directory or lies in memory; name a directory of a data disk"
        )
    return path


def _named_once(adapters: tuple[Adapter, ...]) -> tuple[Adapter, ...]:
    names = [adapter.name for adapter in adapters]
    if more := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(more)}: two adapters have this name; rename one adapter")
    return adapters


Adapters = Annotated[tuple[Adapter, ...], AfterValidator(_named_once)]
#: Top-level folders that belong to the system or lie in memory.
_NO_DISK = ("", "bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp",
            "usr")  # fmt: skip


class KvOffload(data.Data):
    """Space outside GPU memory for the KV cache of earlier conversations.

    Attributes:
        gib: size in GiB.
        disk: absolute path of a directory on a data disk; None for the host's RAM.
    """

    gib: data.Gib
    disk: Annotated[containers.Place, AfterValidator(_of_a_disk)] | None = None


class Needs(data.Data):
    """Requirements of a recipe on its host.

    Attributes:
        compute_caps: accepted compute capabilities.
        memory_gib: least MemTotal of the host, in GiB.
        vram_gib: least dedicated memory of a GPU, in GiB; None for a recipe that runs only on
            unified memory.
    """

    compute_caps: tuple[str, ...]
    memory_gib: data.Gib
    vram_gib: data.Gib | None = None


class Ranks(data.Data):
    """Distribution of a model over GPUs of a cluster's hosts; the product is the number of ranks.

    Attributes:
        tensor: parts of each layer (``--tensor-parallel-size``).
        pipeline: groups of layers (``--pipeline-parallel-size``).
    """

    tensor: int = Field(default=1, ge=1, le=64)
    pipeline: int = Field(default=1, ge=1, le=64)

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self.tensor * self.pipeline


class TagChange(data.Data):
    """Changes to a recipe on one tag; None removes an argument or variable.

    Attributes:
        arguments, environment: overrides of the recipe's values.
    """

    arguments: dict[data.ArgumentName, data.ArgumentValue | None] = Field(default_factory=dict)
    environment: dict[data.VariableName, str | None] = Field(default_factory=dict)
    why: str
    source: str = data.OWN


class Alias(data.Data):
    """Intended use of a served name. All names of a service refer to one model: clients choose the
    behaviour by the parameters that they send.

    Attributes:
        title: the use in a word or two, shown beside the name.
        temperature, top_p, top_k, presence_penalty: values for clients; None leaves a value out.
        thinking: whether the model thinks first; None leaves the choice to the client.
        source: publication that recommends the parameters.
    """

    title: str
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    thinking: bool | None = None
    source: str = data.OWN


class Recipe(data.Data):
    """Image + body + drafter + vLLM arguments + environment + needs.

    Attributes:
        system: the cards' system with this recipe, for the table in the docs.
        status: the card's statement on the recipe as a whole.
        image: the image that serves: an entry of the catalog.
        body: the model that answers.
        drafter: the model that proposes tokens for the body; None without speculative decoding, and
            if the body has its own heads for speculative decoding.
        served_names: names that clients request; the first is the main name.
        needs: GPU and memory that the recipe needs.
        environment: variables of the container.
        tag: the tag on which the card gives the recipe; None for the image's newest tag.
        tags: tags on which the recipe is known to run; empty for every tag of the image.
        by_tag: differences on one tag.
        ranks: distribution over the hosts of a cluster; None for one host.
        aliases: served name -> its purpose; names without a purpose are left out.
        arguments: ``vllm serve`` arguments, in order, with underscores; ``true`` is a bare flag.
        shm_gib: size of /dev/shm that the card requires.
        memlock: whether the card lifts the limit of locked memory.
        exceptions: rights that the container gets beyond the default.
        files: chat templates, plugins and configuration for the container (docs/services.md).
        secrets: names of secrets that the container reads as ``/run/secrets/NAME``; the service
            names each secret's source.
        patches: steps that make a derived image of ``image``, in order.
        boot_seconds: longest time of a first boot until ``/health`` answers.
        first_answer_seconds: longest time of the first generation after ``/health`` answers.
        notes: notes for a reader, as text, each with its source.
        ran: runs on real hardware with this tool; empty without a run.
        adapters: LoRA adapters of the body, each served as its own model.
        kv_offload: memory outside the GPU for the KV cache of earlier conversations.
    """

    kind: Literal["recipe"]
    name: data.Name
    title: str
    system: str = data.OWN
    status: data.Status = "works"
    source: str = data.OWN
    date: dt.date | None = None
    image: data.Name
    tag: str | None = None
    tags: tuple[str, ...] = ()
    by_tag: dict[str, TagChange] = Field(default_factory=dict)
    body: Mounted
    drafter: Mounted | None = None
    served_names: tuple[data.ServedName, ...] = Field(min_length=1)
    aliases: dict[str, Alias] = Field(default_factory=dict)
    needs: Needs
    ranks: Ranks | None = None
    environment: dict[data.VariableName, str] = Field(default_factory=dict)
    arguments: dict[data.ArgumentName, data.ArgumentValue]
    shm_gib: data.Gib | None = None
    memlock: bool = False
    exceptions: containers.Exceptions | None = None
    files: tuple[File, ...] = ()
    secrets: tuple[SecretName, ...] = ()
    patches: tuple[Patch, ...] = ()
    boot_seconds: int = Field(default=900, gt=0)
    first_answer_seconds: int = Field(default=120, gt=0)
    notes: tuple[str, ...] = ()
    ran: tuple[Ran, ...] = ()
    adapters: Adapters = ()
    kv_offload: KvOffload | None = None

    _refuse_privileged = model_validator(mode="before")(containers.refuse_privileged)
