"""The interface of an engine: all uses that sparkwright makes of the server in a container.

An engine is a folder beside this file with an ``ENGINE`` in its ``engine`` module, and a line in
the table of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sparkwright.engines.allowlist import Allowlist
from sparkwright.engines.arguments import Parser, amount, mapping
from sparkwright.host.lib.nap import Nap
from sparkwright.host.lib.records import dataclass, decode, field
from sparkwright.text.shipped_yaml import beside

if TYPE_CHECKING:  # commands that query hosts must not load the catalog
    from sparkwright.catalog import ArgumentValue, Image, Model, Scalar, Variables
    from sparkwright.catalog.entries import KvOffload
    from sparkwright.engines.derivation import Advice, Derived, Subject
    from sparkwright.findings.check import Symptom
    from sparkwright.findings.user_error import Fault

    Arguments = Mapping[str, ArgumentValue]
    Written = dict[str, ArgumentValue | None]


@dataclass(frozen=True)
class Rank:
    """A rank of a service that the hosts of a cluster serve together.

    Attributes:
        number: the rank's number; 0 is the head, the only rank with key, proxy and clients.
        hosts, addresses: hosts and addresses of all ranks, in order.
        interface: network device that connects the ranks.
        shape: cabling of ConnectX-7, ``pair``, ``ring`` or ``switch``; None on a plain network.
        port: port at which the head's engine gathers the ranks; the next port belongs to the rank
            programs.
    """

    cluster: str
    number: int
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    interface: str
    shape: str | None
    port: int

    @property
    def head(self) -> bool:
        """Return whether this rank answers clients."""
        return self.number == 0

    @property
    def address(self) -> str:
        """Address of this rank for the other ranks."""
        return self.addresses[self.number]


@dataclass(frozen=True)
class Launch:
    """The settings that an engine is started with: its part of a service's settings.

    The type is separate, since engines may not import the plan.

    Attributes:
        model: path of the body in the container: the directory of its files, or the served GGUF
            file, the first part of a split file.
        projector: path of the GGUF file for image input; None without this file.
        host, port: the engine's address in the container.
        socket: path of the Unix socket that replaces host and port; None without a socket.
        environment: the recipe's and the service's variables.
        media_domains: hosts from which the engine may fetch media of requests.
        version: the engine's version in the image's tag; None if no card gives it.
        variables: names of the variables of an image that is driven by variables; None for an image
            with arguments.
        caches: the container's directory for boot caches; None without boot caches.
    """

    model: str
    projector: str | None
    served_names: tuple[str, ...]
    host: str
    port: int
    socket: str | None
    arguments: Arguments
    environment: Mapping[str, str]
    media_domains: Sequence[str]
    version: str | None
    variables: Variables | None
    rank: Rank | None
    caches: str | None

    def cache_variables(self, folders: Mapping[str, str]) -> dict[str, str]:
        """Variables with the folders of boot caches; empty without boot caches.

        Args:
            folders: variable -> folder below the directory of boot caches.
        """
        return {name: self.caches + folder for name, folder in folders.items() if self.caches}


@dataclass(frozen=True)
class Command:
    """Command line, after the entry point, and environment of a container."""

    arguments: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Sleep:
    """An engine's sleep, in which its process frees its GPU memory.

    Attributes:
        arguments, environment: settings by which a service gets the routes.
        nap: the requests for sleep and wake-up.
    """

    arguments: Mapping[str, ArgumentValue]
    environment: Mapping[str, str]
    nap: Nap


@dataclass(frozen=True)
class Routes:
    """Routes of an engine's server, each with its method.

    Attributes:
        clients: routes that a proxy passes with the API key; ``{id}`` is one part of a path.
        inference: routes that cost computation or reveal information.
        guarded: prefixes of the paths that the engine's own key check covers.
    """

    clients: tuple[tuple[str, str], ...]
    inference: tuple[tuple[str, str], ...]
    guarded: tuple[str, ...]

    @classmethod
    def of(cls, data: Mapping[str, Sequence[str]]) -> Routes:
        """Routes of engine.yaml, where each route is a text such as ``GET /metrics``."""

        def split(kind: str) -> tuple[tuple[str, str], ...]:
            return tuple((text.split()[0], text.split()[1]) for text in data[kind])

        return cls(split("clients"), split("inference"), tuple(data["guarded"]))

    @property
    def open(self) -> tuple[str, ...]:
        """Paths that answer without the key if no proxy stands before the engine."""
        return tuple(path for _, path in self.inference if not path.startswith(self.guarded))


@dataclass(frozen=True)
class Probes:
    """Requests to an engine's server, and its folders on a host; empty values mean that the engine
    lacks a request or folder.

    Attributes:
        version: route that answers with the version.
        tokenizer: route that answers with the tokens of a text.
        tokenized: key of the text in the request.
        key_probe: route that answers with 401 without the key, in every version.
        context_errors: texts; an error about an overlong prompt contains one of these texts.
        compiled: folder of compiled graphs, below the directory of boot caches.
        kinds: kind of a model (``catalog.entries.Task``) -> route of its requests.
    """

    version: str = ""
    tokenizer: str = ""
    tokenized: str = "prompt"
    key_probe: str = "/v1/models"
    context_errors: Sequence[str] = ()
    compiled: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """A service's arguments by neutral names; None if the engine decides, or lacks the argument.

    Attributes:
        context: tokens of one sequence; 0 if the engine decides by its memory.
        sequences: number of requests that the engine serves at once.
        share: part of a GPU's memory that the engine takes.
        gpus: number of GPUs that the engine uses.
        tools: parser of tool calls, if the model may call tools.
        reasoning: whether reasoning is separate from the answer.
        speculative: settings of speculative decoding; None without speculative decoding.
        caching: whether prefixes stay in the cache.
        blind: argument that disables the vision of a model.
        cache: tokens of all sequences for which the engine reserves memory at its start; None if
            its share of the memory decides.
        remote_code: whether code of the model's repository runs.
        head: address of the rank that gathers the other ranks.
        pools: whether the model gives vectors or scores instead of text; ``embeddings`` or
            ``rerank`` if it gives only vectors or only scores.
    """

    context: int | None = None
    sequences: int | None = None
    share: float | None = None
    gpus: int = 1
    tools: str | None = None
    reasoning: bool = False
    speculative: Mapping[str, Scalar | None] | None = None
    caching: bool | None = None
    blind: str | None = None
    cache: int | None = None
    remote_code: bool = False
    head: str | None = None
    pools: bool | str = False

    @property
    def speculates(self) -> bool:
        """Return whether the engine drafts tokens."""
        return self.speculative is not None


@dataclass(frozen=True)
class Configuration:
    """Configuration of a service, for the checks of its engine.

    Attributes:
        version: the engine's version in the image's tag; None if no card gives it.
        drafter_mount: path of the drafter in the container.
        unified: whether CPU and GPU share one pool of memory.
        gpus: number of GPUs on all hosts of the service; None if unknown.
        pool_gib: memory of the GPU, or of the shared pool; None if unknown.
    """

    engine: Engine
    version: str | None
    image: Image
    body: Model
    drafter: Model | None
    drafter_mount: str | None
    arguments: Arguments
    environment: Mapping[str, str]
    unified: bool
    gpus: int | None
    pool_gib: float | None

    @cached_property
    def defaults(self) -> Arguments:
        """Values of arguments that are not written: from the image's own entry point, and from the
        tag's engine; without the engine's values if no card gives its version.
        """
        own = self.image.variables.defaults if self.image.variables else {}
        if self.version is None:
            return own
        return {**self.engine.parser.tables.defaults(self.version, self.body.hybrid), **own}

    @cached_property
    def written(self) -> Arguments:
        """Arguments as written, by their names in the engine's tables."""
        spelling = self.engine.parser.spelling
        return {spelling(key, self.version): value for key, value in self.arguments.items()}

    @cached_property
    def effective(self) -> Arguments:
        """Arguments as written, or their defaults."""
        return {**self.defaults, **self.written}

    @cached_property
    def parts(self) -> Arguments:
        """Arguments as written, or their defaults, with names such as ``attention_config.backend``
        for an argument of several values, which is a mapping or JSON.
        """
        several = {key: mapping(value) for key, value in self.effective.items()}
        return {key: value for key, value in self.effective.items() if several[key] is None} | {
            f"{key}.{part}": item for key in several for part, item in (several[key] or {}).items()
        }

    @cached_property
    def limits(self) -> Limits:
        """Limits of the arguments as written, or of their defaults."""
        return self.engine.limits(self.effective)

    def number(self, argument: str) -> float | None:
        """An argument's number, written (also as ``"32k"``) or by default; None if missing."""
        return amount(self.effective.get(argument))


#: A model's pooling, or its task -> kinds of requests that it answers, if they differ from the
#: default. A model that pools without a stated purpose gives scores, and perhaps vectors.
_ANSWERED: Mapping[bool | str, tuple[str, ...]] = {
    True: ("embedding", "rerank", "score"), "embedding": ("embedding", "rerank", "score"),
    "rerank": ("rerank", "score"), "score": ("rerank", "score"), "embeddings": ("embedding",),
    "chat": ("chat", "completion"),
}  # fmt: skip


def from_data(file: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an engine from its data: engine.yaml, and the files beside its module."""
    named = ("caches", "parallel", "metrics", "graphs", "in_image")
    return {
        "routes": Routes.of(data["routes"]),
        "probes": Probes(**data["probes"]),
        "limit_names": data["limits"],
        "check_texts": Path(file).with_name("checks.yaml"),
        **{name: data.get(name, {}) for name in named},
        **data["engine"],
        "sleep": Sleep(**{**data["sleep"], "nap": decode(Nap, data["sleep"]["nap"])})
        if "sleep" in data
        else None,
    }


def _stated_gib(model: Model, _: Arguments) -> float | None:
    return model.loaded_gib or model.size_gib


def _nothing(*_: object) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine: its names, its data and its functions.

    Attributes:
        name: the engine's name in images of the catalog.
        title: the engine's name in messages.
        program: the serving program in the engine's images.
        processes: parts of the names of the engine's processes, as in ``ps -o comm``.
        key_variable: the variable with the engine's API key.
        caches: variable -> folder below the directory of boot caches.
        parallel: argument -> the part of a recipe's ``ranks`` that sets it.
        metrics: neutral name of ``sparkwright.host.lib.metrics`` -> the engine's own name.
        graphs: further metrics, only for dashboards: ``between_tokens``, ``whole_request``,
            ``queue`` (histograms of seconds), ``accepted_by_position``.
        checks: modules that check a ``Configuration`` for known mistakes.
        check_texts: YAML file with the texts of these checks.
        stock_image: the catalog's image for a model without a recipe.
        probes: requests of host programs to the engine's server in addition to OpenAI's routes.
        in_image: paths of chat templates in the engine's images, as patterns of fnmatch.
        limit_names: neutral name of ``Limits`` -> the argument that sets it, for messages.
        overhead_gib: memory in addition to weights and KV cache.
        ram_gib: returns the GiB of the host's RAM that the engine may also fill; unified memory
            must have room for them.
        compiles: whether a first boot compiles kernels, in parallel jobs that need a limit.
        parser: arguments and variables that the engine accepts, by version.
        gpu_counts: arguments whose product is the number of GPUs that the engine uses.
        formats: formats of weights that the engine serves.
        healthcheck: whether the engine's images have a health check for Docker, which queries a
            separate port.
        unproven: reason why the engine counts as unproven; empty once the real engine ran.
        drafter: argument that names the drafter; empty if the drafter is part of another argument's
            value.
        one_name: whether the engine lists a model under only one name.
        name_mark: a character that no served name can have.
        media_list: returns whether a version fetches media only from the hosts of a list.
        limits: returns the limits in the arguments of a plan, or of a container's command line,
            where values are texts.
        weights_gib: returns the GiB of a model's weights in the GPU's memory; None if no size is
            known.
        kv_bytes: returns the bytes of the KV cache of a sequence of this many tokens; None if a
            model's geometry is not known.
        command: returns command line and environment of a service's container.
        refused: yields variables of an image that the service's own settings set.
        read_back: moves variables that stand for an argument from the environment to the arguments;
            takes an image, arguments, environment, and the origins of both.
        additions: returns arguments for adapters (paths by name), their largest rank (0 if unknown)
            and offload, in a version, without unsupported features.
        rank_environment: returns the engine's own variables of a rank, beside the collective
            libraries' variables.
        rank_misuses: yields arguments with which the engine can't serve on several hosts.
        seen_faults: yields faults in the command line of a running container, on unified memory or
            not; causes.yaml has their texts.
        template_marks: returns texts of a chat template by which a derived service gets arguments.
        sleep: the engine's sleep mode; None for an engine without sleep mode.
        derive: returns a recipe from a model's own files, or open questions about them.
    """

    name: str
    title: str
    program: str
    processes: Sequence[str]
    key_variable: str
    routes: Routes
    caches: Mapping[str, str]
    parallel: Mapping[str, str]
    metrics: Mapping[str, str]
    graphs: Mapping[str, str]
    checks: Sequence[ModuleType]
    check_texts: Path
    stock_image: str
    probes: Probes
    in_image: Collection[str]
    limit_names: Mapping[str, str]
    overhead_gib: float
    ram_gib: Callable[[Mapping[str, Any]], float] = lambda _: 0.0
    compiles: bool = True
    parser: Parser
    gpu_counts: Sequence[str]
    formats: Collection[str]
    healthcheck: bool = False
    unproven: str = ""
    drafter: str = ""
    one_name: bool = False
    name_mark: str = ""
    media_list: Callable[[str | None], bool] = lambda _: True
    limits: Callable[[Mapping[str, Any]], Limits]
    weights_gib: Callable[[Model, Arguments], float | None] = _stated_gib
    kv_bytes: Callable[[Model, Arguments, int], float | None]
    command: Callable[[Launch], Command]
    refused: Callable[[Variables, Mapping[str, str]], Iterator[Fault]] = _nothing
    read_back: Callable[[Variables, Written, dict[str, str | None], dict[str, str]], None] = (
        lambda *_: None
    )
    additions: Callable[[str | None, Mapping[str, str], int, KvOffload | None], Arguments] = (
        lambda *_: {}
    )
    rank_environment: Callable[[Rank], dict[str, str]] = lambda _: {}
    rank_misuses: Callable[[Mapping[str, ArgumentValue | None]], Iterator[Fault]]
    seen_faults: Callable[[Mapping[str, str], bool], Iterator[Symptom]] = _nothing
    template_marks: Callable[[], tuple[str, ...]] = tuple
    sleep: Sleep | None = None
    derive: Callable[[Subject, Advice], Derived]

    @cached_property
    def allowlist(self) -> Allowlist:
        """Settings that an imported recipe may use."""
        return Allowlist(**beside(str(self.check_texts), "allowlist.yaml"))

    def file_arguments(self, *, code: bool) -> set[str]:
        """Arguments that may name a file of a third party's recipe: the chat template, and with
        ``code`` the plugins of parsers.
        """
        return {self.limit_names["template"], *(self.parser.plugins.values() if code else ())}

    def kinds(self, arguments: Mapping[str, Any], task: str) -> dict[str, str]:
        """Kinds of requests that a service with these arguments answers, each with its route.

        Args:
            task: the model's task in its catalog entry; arguments for vectors or scores take
                precedence.
        """
        answered = _ANSWERED.get(self.limits(arguments).pools or task, (task,))
        return {kind: route for kind, route in self.probes.kinds.items() if kind in answered}
