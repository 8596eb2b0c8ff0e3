"""Settings of a host, as inventory and group_data give them: typed, complete, nothing unknown."""

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sparkwright.catalog import ArgumentValue, Exceptions, data, refuse_privileged
from sparkwright.catalog.entries import Adapters, KvOffload
from sparkwright.catalog.files import File, SecretName
from sparkwright.catalog.gguf import ModelName, split
from sparkwright.catalog.gpus import Card
from sparkwright.config import values
from sparkwright.config.bootstrap_settings import Packaged, PackageSource, Step
from sparkwright.config.clusters import ClusterSettings
from sparkwright.config.fabric import FabricAddresses
from sparkwright.config.notices import NoticeAddress
from sparkwright.config.registries import RegistryAddress, RegistryName
from sparkwright.config.schedule import CalendarText
from sparkwright.config.secrets import Command, Source

#: The least budget of an answer that may think first.
THINKING_TOKENS = 2048
#: Where only the host itself reaches a server.
LOOPBACK = "127.0.0.1"
#: What a server binds that listens at every address of its host.
EVERY_ADDRESS = ("0.0.0.0", "::", "*")


def is_loopback(address: str) -> bool:
    """Whether only the host itself reaches what listens there."""
    return address in ("localhost", "::1") or address.startswith("127.")


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class SmokeSettings(_Settings):
    """How a service is tested with real requests.

    Attributes:
        thinking: whether the model may think first; then max_tokens must hold its thoughts too.
            Without, a short budget is enough for an answer.
        max_tokens: budget of one answer.
    """

    thinking: bool = False
    max_tokens: values.Whole = Field(default=32, gt=0, le=1_000_000)


class RolloutSettings(_Settings):
    """How hosts that serve already are switched to something new. Set it in group_data/all.py.

    Attributes:
        canaries: hosts that go first, by number or by name.
        batch: hosts at a time after that, as a number or a share of all (``"25%"``).
        pause_seconds: between two turns.
        soak_seconds: how long a switched host is looked on before the next turn; some releases
            die after a minute.
        notice_seconds: how long a service behind a proxy says that it is leaving before it is left:
            longer than it takes those in front to notice.
        drain_seconds: time that running requests get before a service behind a proxy is stopped.
        on_failure: ``halt`` takes back the host that failed and leaves the others as they are then;
            ``fleet`` takes back those that were switched before it too.
        unprepared: a host whose image or weights can't be had is left out (``leave``), or nothing
            is switched anywhere (``stop``).
    """

    canaries: Annotated[values.Whole, Field(ge=0, le=10_000)] | tuple[str, ...] = 1
    batch: (
        Annotated[values.Whole, Field(ge=1, le=10_000)]
        | Annotated[str, StringConstraints(pattern=r"^([1-9]|[1-9][0-9]|100)%$")]
    ) = "25%"
    pause_seconds: values.Seconds = 0
    soak_seconds: values.Seconds = 75
    notice_seconds: values.Seconds = 7
    drain_seconds: values.Seconds = 600
    on_failure: Literal["halt", "fleet"] = "halt"
    unprepared: Literal["leave", "stop"] = "leave"


class ActivationSettings(_Settings):
    """How requests activate exclusive services that have ``activate = "on-request"``.

    Attributes:
        stay_seconds: that a service runs at least before a request has another one of its group
            run: two clients of two services do not drive each other out.
        wait_seconds: that a request waits at most for its service to give real answers.
    """

    stay_seconds: float = Field(default=600, ge=0)
    wait_seconds: float = Field(default=900, ge=1, le=3600)


class SecretSettings(_Settings):
    """Where a secret of a service comes from; one of the three is set.

    Attributes:
        name: the container reads it from ``/run/secrets/NAME``.
        variable: a variable of this machine's environment.
        file: a file on the controller that nobody but its owner may read.
        command: prints it, as api_key_command does.
    """

    name: SecretName
    variable: data.VariableName | None = None
    file: values.ControllerFile | None = None
    command: Command | None = None

    @model_validator(mode="after")
    def _from_one_source(self) -> Self:
        if sum(source is not None for source in (self.variable, self.file, self.command)) != 1:
            raise ValueError("a secret has one source; write 'variable', 'file' or 'command'")
        return self

    @property
    def source(self) -> Source | None:
        """Its file or command; None for a variable."""
        return self.command or self.file


class ServiceSettings(_Settings):
    """A recipe on a host, or a model with a recipe that is derived from its files.

    Attributes:
        recipe: a recipe's name in the catalog; either this or ``model`` is set.
        model: a Hugging Face repository, ``organisation/name``. The catalog's best recipe for it
            serves it; where there is none, what its own files say (docs/own-models.md). Of a
            repository of GGUF files ``organisation/name:Q4_K_M`` or ``organisation/name/file.gguf``
            names one; without that, it is the largest that fits the GPU.
        revision: branch, tag or commit of ``model``; its main branch when not set.
        engine: the engine that serves ``model``: ``vllm``, ``sglang`` or ``llamacpp``. Not set,
            llama.cpp serves GGUF files, and vLLM everything else.
        image: the image that serves ``model``: an entry of the catalog; the engine's stock image
            when not set.
        port: TCP port that clients connect to.
        bind: address that clients connect to. Not set, it is every one (``0.0.0.0``) behind the
            proxy and ``127.0.0.1`` without it.
        proxy: whether HAProxy stands before it: it listens on bind and port, asks for the key, lets
            only the client routes through, and has vLLM listen on a Unix socket that no other user
            of the host reaches.
        served_names: replaces the recipe's names; the first is the main one.
        image_tag: replaces the image's newest tag for this service.
        cluster: one of ``clusters``, whose hosts serve it together; each of them has this service,
            and its recipe says the ``ranks`` (docs/clusters.md).
        gpus: those that its container gets, by UUID or index as ``nvidia-smi -L`` has them; all of
            the host's when not set.
        arguments: ``vllm serve`` arguments over the recipe's; None takes one away.
        environment: variables over the recipe's; None takes one away.
        files: files that its container reads, over the recipe's by their path ``at``
            (docs/services.md).
        secrets: secrets that its container reads, such as the token of a tool server, with the
            secrets that its recipe names (docs/services.md).
        boot_seconds: replaces the recipe's deadline for ``/health``.
        first_answer_seconds: replaces the recipe's deadline for the first generation after that.
        media_domains: hosts whose images, videos and audio its engine fetches when a request names
            them by URL, such as ``upload.wikimedia.org``. Without any, requests carry them as
            ``data:`` URLs, and the engine connects to nobody for a client.
        smoke: how it is tested with real requests.
        outgoing: whether its container may begin connections, to a mirror for example;
            ``media_domains`` opens them, too. Else it has no network behind the proxy, and one that
            leads nowhere without it.
        hardening: ``strict`` takes more from its container than every container is without: its
            root file system is read-only, and what it writes goes with it.
        boot_caches: whether what the engine compiles at its first start is kept for the next ones,
            for this host, image, GPU and driver; not when nothing may stay (``strict``), unless it
            is set.
        exceptions: what its container gets over that, and why; over the recipe's own.
        silenced: rule -> why it does not hold here. Said in every run.
        exclusive: name of a group of services. One service of a group runs at a time: the first
            in the file, until you activate another service (docs/services.md).
        activate: ``on-request``: a client's request activates it, too, while another one of its
            group runs. It needs exclusive and proxy.
        adapters: LoRA adapters of the body, each a model of its own at the address; over the
            recipe's, by name.
        kv_offload: room beside the GPU's memory for the KV cache of earlier conversations; replaces
            the recipe's; None takes the recipe's away.
    """

    recipe: str | None = None
    model: ModelName | None = Field(default=None, validate_default=True)
    revision: data.Revision | None = None
    engine: data.Name | None = None
    image: data.Name | None = None
    port: values.Port = 8000
    bind: values.Address | None = None
    proxy: bool = True
    served_names: tuple[data.ServedName, ...] | None = Field(default=None, min_length=1)
    image_tag: str | None = None
    cluster: values.ServiceName | None = None
    gpus: tuple[values.GpuName, ...] | None = Field(default=None, min_length=1)
    arguments: dict[data.ArgumentName, ArgumentValue | None] = {}
    environment: dict[data.VariableName, str | None] = {}
    files: tuple[File, ...] = ()
    secrets: tuple[SecretSettings, ...] = ()
    boot_seconds: values.WholeSeconds | None = None
    first_answer_seconds: values.WholeSeconds | None = None
    media_domains: tuple[values.HostName, ...] = ()
    smoke: SmokeSettings = SmokeSettings()
    outgoing: bool = False
    hardening: Literal["default", "strict"] = "default"
    boot_caches: bool | None = None
    exceptions: Exceptions | None = None
    silenced: dict[str, values.Reason] = {}
    exclusive: values.ServiceName | None = None
    activate: Literal["on-request"] | None = None
    adapters: Adapters = ()
    kv_offload: KvOffload | None = None

    _refuse_privileged = model_validator(mode="before")(refuse_privileged)

    @field_validator("model")
    @classmethod
    def _recipe_or_model(cls, model: str | None, info: ValidationInfo) -> str | None:
        if (info.data.get("recipe") is None) is (model is None):
            raise ValueError(
                "a service has either 'recipe' or 'model'; name a recipe of the catalog, "
                "or a model's repository on the hub"
            )
        return model

    @field_validator("revision", "engine", "image")
    @classmethod
    def _of_the_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("recipe"):
            raise ValueError("this goes with 'model', and a recipe has its own; leave it out")
        return value

    @property
    def repository(self) -> str:
        """The repository of ``model``."""
        return split(self.model or "/")[0]

    @property
    def choice(self) -> str:
        """The quantization or file that ``model`` names; empty where it names none."""
        return split(self.model or "/")[1]

    @property
    def address(self) -> str:
        """Where clients connect: vLLM's own key check leaves routes open, so that without a proxy
        only the host itself is let near."""
        return self.bind or ("0.0.0.0" if self.proxy else LOOPBACK)


class AddressSettings(_Settings):
    """One address for all models of the inventory, on the host that has this.

    Attributes:
        port: TCP port that clients use.
        bind: address that it listens on; ``*`` is every IPv4 address.
    """

    port: values.Port = 8080
    bind: values.Address = "*"


_Limit = Annotated[values.Whole, Field(ge=1)]


class ClientKeySettings(_Settings):
    """The API key of one client. Without a command it is made in ``.sparkwright/keys/NAME``.

    A key with ``models`` or a limit opens the fleet's ``address`` and no service beside it.

    Attributes:
        command: prints it, as api_key_command does.
        models: names of models that it may use; every model when not set.
        requests_minute, requests_day: requests that it may send; no limit when not set.
        tokens_minute, tokens_day: tokens of prompts and answers that it may use. A request that is
            under way when the limit is reached comes to its end.
    """

    command: Command | None = None
    models: tuple[data.ServedName, ...] | None = Field(default=None, min_length=1)
    requests_minute: _Limit | None = None
    requests_day: _Limit | None = None
    tokens_minute: _Limit | None = None
    tokens_day: _Limit | None = None

    @property
    def limited(self) -> bool:
        """Whether it has rights or limits, which an address alone judges."""
        return bool(self.model_dump(exclude={"command"}, exclude_none=True))


class TlsSettings(_Settings):
    """A certificate of the user's own; files on the controller, in PEM.

    Attributes:
        certificate: the host's certificate, then the chain to its CA.
        key: its private key, which nobody but its owner may read.
        ca: what clients and the fleet's address verify it by, when that is no public CA.
    """

    certificate: values.ControllerFile
    key: values.ControllerFile
    ca: values.ControllerFile | None = None


def _kind_of_tls(value: object) -> str:
    return "[own]" if isinstance(value, str) else "[files]"


#: Names (* for any part), addresses and networks of servers.
_Servers = tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:*/-]+$")], ...]
_Tls = Annotated[
    Annotated[Literal["own"], Tag("[own]")] | Annotated[TlsSettings, Tag("[files]")],
    Discriminator(_kind_of_tls),
]

#: Names that nothing of the user's may have, by setting: of which kind, and their pattern.
_OWN_NAMES = {
    "services": (
        "unit",
        "gateway|health|models|recover|schedule|switch|wake|watch|(fetch|pull|share)-.*",
    ),
    "keys": ("key", "default|sparkwright|address"),
}


class HostSettings(_Settings):
    """Everything that inventory and group_data may say of a host.

    Attributes:
        services: by name.
        clusters: hosts that serve one model together, by name.
        gpu: the host's GPU, by which a service that names a ``model`` is sized. When not set, the
            groups ``sparks`` and ``rtx50`` say it, or the recipes of other services.
        image_tag: tag for every service of the host that names none of its own.
        image_mirrors: registry host -> ``http(s)://host:port`` to pull from instead; address of a
            git repository that an image is built from -> address to clone instead.
        image_keys: pattern of an image's ``host/path`` -> file on the controller with the public
            key of its publisher (cosign.pub): an image that this key has not signed is not
            deployed (docs/security.md). The first pattern that matches counts.
        private_servers: names (* for any part), addresses and networks (``10.0.0.0/8``) that a
            registry, hub or git server of the internet may lead this machine to: its storage or
            token service in a private network, behind a split DNS. Every other is refused. Through
            a proxy, which looks names up by itself, an address is compared only with a URL's own.
        hub_endpoint: where models are looked up and fetched.
        hub_token_file: file on the controller with a token for gated models; the environment's
            HF_TOKEN serves where neither this nor hub_token_command is set.
        hub_token_command: prints that token instead: a list of words, run on the controller
            without a shell, once per run.
        models_root: holds ``<org>--<name>/<commit>/`` with the files of each model.
        services_root: holds services, releases, runtime and job state.
        registry_auth_file: file on the controller with accounts of private registries, as
            ``docker login`` writes it (``config.json``).
        registry_auth_command: prints the content of such a file instead, as hub_token_command.
        downloader: ``hf_transfer``, or ``http`` (a tenth of the memory).
        download_connections: ranges fetched at once for one file.
        download_limit_mb: megabytes per second that a host fetches at most, for
            the image and for each model; None is no limit.
        peer_sharing: whether hosts take from each other what one of them has or fetches, so that
            it comes over the internet once.
        peer_port: TCP port on which hosts serve each other.
        http_proxy: ``http://host:port``, by which hosts reach hub, registries and the
            distribution's packages; no account is in it. Hosts of the LAN are reached without it:
            private addresses, names without a dot or in ``.local``, ``.lan``, ``.internal`` and
            ``.home.arpa``.
        no_proxy: further names and addresses that are reached without it.
        lan_address: where other hosts reach this one, if not where the controller does.
        adopt_directories: directories of hosts (with * for any part) where earlier downloads may
            lie; files of the right content are taken from there instead of fetched.
        allowed_pickles: files of models that are fetched although they are pickles, which run code
            when they are loaded: pattern of ``org/name/path`` -> why.
        allowed_in_recipes: arguments (``kv_transfer_config``, or one key of it as ``argument.key``)
            and variables that other people's recipes may set although the engine's list lacks them:
            name -> why. The list has names that load no code, read no file and send nothing away.
        schedule: exclusive service -> when it runs in place of its group's first one, such as
            ``Mon..Fri 08:00..18:00`` or ``Sat,Sun 22:00..06:00``, by the host's own clock
            (docs/services.md).
        activation: how requests activate services with ``activate = "on-request"``.
        address: one address for all models of the inventory, at which this host gives each request
            to a service that has its model (docs/proxy.md).
        rollout: how hosts that serve already are switched.
        take_over: whether a container that somebody started by hand on a service's port is stopped
            for it, and kept: `sparkwright remove` starts it again.
        break_lock: whether to take over a host's lock from another run; for the command line.
        keep_releases: releases that are kept of each service, to go back to, with their images
            and weights; ``sparkwright models prune`` removes what is beyond.
        bundle: directory on the controller, made by ``sparkwright bundle``, that hosts take
            everything from instead of asking hub and registry.
        watch: whether a timer on the host looks at services, GPU and disks every minute.
        drop_caches: whether the page cache of a GB10 is dropped before a service starts: its memory
            is the GPU's, and loading weights has failed when it was full of files.
        second_boot: whether a switch starts a service of a GB10 once more after a start that
            compiled: its memory is the GPU's, and the compiler's peak is taken from the KV cache.
        disk_headroom_gib: GiB that must stay free after everything is fetched.
        api_key_file: file on the controller with the fleet's API key; made when absent. The
            environment's SPARKWRIGHT_API_KEY goes before it.
        api_key_command: prints that key and goes before the file, as hub_token_command; for a
            store such as ``pass``, ``op`` or ``sops``.
        tls: ``"own"``: proxies serve https with certificates of the site's own CA, which a run
            makes on the controller; or certificate and key of the user's own. None serves http.
        keys: API keys by the names of clients, beside the fleet's own. A proxy logs the name and
            never the key; each can be rotated and revoked by itself (docs/proxy.md).
        sidecars: what else runs on the host -> GiB of memory that are kept for it.
        bootstrap: steps that make a bare host ready before everything else, done only where they
            are named here (docs/install.md).
        bootstrap_sources: step -> where its packages come from.
        bootstrap_reboot: whether a host whose new driver needs a reboot gets it, and is waited for;
            for the command line.
        fabric_addresses: static addresses of ConnectX-7 ports, which `sparkwright fabric addresses`
            writes and no deploy does (docs/clusters.md). Set it in group_data/all.py.
        catalog_directories: catalogs of the user, read after the shipped catalog.
        registries: other people's recipes, for `sparkwright import @NAME`:
            name -> git repository, ``https://…`` or a path of the controller. The lock pins each to
            a commit. Nothing of them is served until it is imported, but for arguments that vLLM's
            own recipes have for a service that names a model (docs/own-models.md).
        inventory: the site's inventory, where inventory/ has several and the command line and
            SPARKWRIGHT_INVENTORY name none; read from group_data/all.py.
        lock_file: pins of everything, made by ``sparkwright lock``. One that is named must be
            there; ``fleet.lock`` is used when it is.
        notify: where ``sparkwright notify`` tells what begins, worsens and ends: ``ntfy:TOPIC`` or
            ``ntfy:https://HOST/TOPIC``, ``mailto:NAME@DOMAIN?smtp=HOST:PORT``,
            ``webhook:https://HOST/PATH`` (docs/monitoring.md).
        notify_file: file on the controller with further addresses, one per line: those with a
            secret in them, and every URL of Apprise's (``tgram://…``, ``discord://…``).
        notify_command: prints such lines instead, as hub_token_command.
    """

    services: dict[values.ServiceName, ServiceSettings]
    clusters: dict[values.ServiceName, ClusterSettings] = {}
    gpu: Card | None = None
    image_tag: str | None = None
    image_mirrors: dict[
        str, Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+\S*$")]
    ] = {}
    image_keys: dict[str, values.ControllerFile] = {}
    private_servers: _Servers = ()
    hub_endpoint: values.HttpAddress = "https://huggingface.co"
    hub_token_file: values.ControllerFile | None = None
    hub_token_command: Command | None = None
    models_root: values.OwnDirectory = "/opt/models"
    services_root: values.OwnDirectory = "/opt/sparkwright"
    downloader: Literal["hf_transfer", "http"] = "hf_transfer"
    download_connections: values.Whole = Field(default=16, ge=1, le=64)
    registry_auth_file: values.ControllerFile | None = None
    registry_auth_command: Command | None = None
    download_limit_mb: float | None = Field(default=None, ge=0.1, le=1_000_000)
    peer_sharing: bool = True
    peer_port: values.Port = 18650
    http_proxy: values.ProxyAddress | None = None
    no_proxy: _Servers = ()
    lan_address: values.Address | None = None
    adopt_directories: tuple[values.AbsolutePattern, ...] = (
        "/opt/qwen36",
        "/models",
        "/root/.cache/huggingface/hub",
        "/home/*/.cache/huggingface/hub",
    )
    allowed_pickles: dict[str, values.Reason] = {}
    allowed_in_recipes: dict[str, values.Reason] = {}
    schedule: dict[values.ServiceName, CalendarText] = {}
    activation: ActivationSettings = ActivationSettings()
    address: AddressSettings | None = None
    rollout: RolloutSettings = RolloutSettings()
    take_over: bool = False
    break_lock: bool = False
    keep_releases: values.Whole = Field(default=3, ge=1, le=1000)
    bundle: values.ControllerPath | None = None
    watch: bool = True
    drop_caches: bool = True
    second_boot: bool = True
    disk_headroom_gib: values.Gib = 20
    api_key_file: values.ControllerFile = ".sparkwright/api_key"
    api_key_command: Command | None = None
    tls: _Tls | None = None
    keys: dict[values.ServiceName, ClientKeySettings] = {}
    bootstrap: tuple[Step, ...] = ()
    bootstrap_sources: dict[Packaged, PackageSource] = {}
    bootstrap_reboot: bool = False
    fabric_addresses: FabricAddresses | None = None
    catalog_directories: tuple[values.ControllerPath, ...] = ()
    registries: dict[RegistryName, RegistryAddress] = {}
    sidecars: dict[str, Annotated[values.Gib, Field(gt=0)]] = {}
    inventory: values.ControllerFile | None = None
    lock_file: values.ControllerFile = "fleet.lock"
    notify: tuple[NoticeAddress, ...] = ()
    notify_file: values.ControllerFile | None = None
    notify_command: Command | None = None

    @property
    def api_key_source(self) -> Source:
        """Where the fleet's API key comes from."""
        return self.api_key_command or self.api_key_file

    @property
    def hub_token_source(self) -> Source | None:
        """Where the token for gated models comes from."""
        return self.hub_token_command or self.hub_token_file

    @property
    def registry_auth_source(self) -> Source | None:
        """Where the accounts of private registries come from."""
        return self.registry_auth_command or self.registry_auth_file

    @field_validator("services", "keys")
    @classmethod
    def _names_are_free(cls, entries: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        kind, own = _OWN_NAMES[str(info.field_name)]
        for name in entries:
            if re.fullmatch(own, name):
                raise ValueError(f"{name!r} is the name of a {kind} of sparkwright's own")
        return entries

    @field_validator("image_mirrors")
    @classmethod
    def _registries_have_no_path(cls, mirrors: dict[str, str]) -> dict[str, str]:
        for name, address in mirrors.items():
            if "://" not in name and urlsplit(address).path.strip("/"):
                raise ValueError(f"the mirror of {name} is http(s)://host:port, without a path")
        return mirrors
