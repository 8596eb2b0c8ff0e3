"""Settings of a host from inventory and group_data: typed, with defaults, no unknown keys."""

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sparkwright.catalog import ArgumentValue, Exceptions, data, file_entries, refuse_privileged
from sparkwright.catalog.entries import Adapters, KvOffload
from sparkwright.catalog.gguf import ModelName, split
from sparkwright.catalog.gpus import Card
from sparkwright.config import bootstrap_settings, fabric, notices, values
from sparkwright.config.clusters import ClusterSettings
from sparkwright.config.registries import RegistryAddress, RegistryName
from sparkwright.config.schedule import CalendarText
from sparkwright.config.secrets import Command, Source

#: Least token budget of an answer if the model may think first.
THINKING_TOKENS = 2048
#: Address at which only the host itself reaches a server.
LOOPBACK = "127.0.0.1"
#: Bind addresses that stand for every address of the host.
EVERY_ADDRESS = ("0.0.0.0", "::", "*")


def is_loopback(address: str) -> bool:
    """Return whether only the host itself reaches this address."""
    return address in ("localhost", "::1") or address.startswith("127.")


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class SmokeSettings(_Settings):
    """Smoke test of a service.

    Attributes:
        thinking: whether the model may think first; max_tokens must then include the reasoning.
        max_tokens: budget of one answer.
    """

    thinking: bool = False
    max_tokens: values.Whole = Field(default=32, gt=0, le=1_000_000)


class RolloutSettings(_Settings):
    """Roll-out to hosts that already serve. Set ``rollout`` in group_data/all.py.

    Attributes:
        canaries: hosts that are switched first: a number, or names.
        batch: hosts per batch after the canaries, as a number or a share of all (``"25%"``).
        pause_seconds: pause between two batches.
        soak_seconds: observation of a switched host before the next batch; some releases fail after
            a minute.
        notice_seconds: time in which a proxied service reports 503 before it drains; must exceed
            the time until the fleet's address detects 503.
        drain_seconds: time for running requests before a service behind a proxy stops.
        on_failure: ``halt`` rolls back the failed host and stops the roll-out; ``fleet`` also rolls
            back hosts switched earlier.
        unprepared: reaction to a host that can't get its image or weights: leave out the host
            (``leave``) or switch no host (``stop``).
    """

    canaries: Annotated[values.Whole, Field(ge=0, le=10_000)] | tuple[str, ...] = 1
    batch: (
        Annotated[values.Whole, Field(ge=1, le=10_000)]
        | Annotated[str, Field(pattern=r"^([1-9]|[1-9][0-9]|100)%$")]
    ) = "25%"
    pause_seconds: values.Seconds = 0
    soak_seconds: values.Seconds = 75
    notice_seconds: values.Seconds = 7
    drain_seconds: values.Seconds = 600
    on_failure: Literal["halt", "fleet"] = "halt"
    unprepared: Literal["leave", "stop"] = "leave"


class ActivationSettings(_Settings):
    """Activation of exclusive services by requests (``activate = "on-request"``).

    Attributes:
        stay_seconds: least time that a service runs before a request activates another service
            of its group.
        wait_seconds: longest wait of a request until its service answers; with 0, requests get 503
            and ``Retry-After``.
    """

    stay_seconds: float = Field(default=600, ge=0)
    wait_seconds: float = Field(default=900, ge=0, le=3600)


class IdleSettings(_Settings):
    """Idle time after which a service frees its memory until the next request.

    Attributes:
        after: time without a request, such as ``20m`` or ``2h``.
        do: ``stop`` stops the service; ``sleep`` frees the GPU's memory (vLLM, outside exclusive
            groups).
    """

    after: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhd]$")]
    do: Literal["stop", "sleep"] = "stop"

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return float(self.after[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[self.after[-1]]


class SecretSettings(_Settings):
    """Source of a service's secret: a variable, a file or a command.

    Attributes:
        name: name of the file ``/run/secrets/NAME`` in the container.
        variable: a variable of the controller's environment.
        file: a file on the controller that only its owner can read.
        command: command that prints the secret, like api_key_command.
    """

    name: file_entries.SecretName
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
        """File or command of the secret; None for a variable."""
        return self.command or self.file


class ServiceSettings(_Settings):
    """A recipe on a host, or a model with a recipe that is derived from its files.

    Attributes:
        recipe: a recipe's name in the catalog. Set either ``recipe`` or ``model``.
        model: a Hugging Face repository, ``organisation/name``, served by the catalog's best
            recipe, or by a recipe from its files (docs/own-models.md). ``organisation/name:Q4_K_M``
            or ``organisation/name/file.gguf`` selects a GGUF file; default: the largest file that
            fits the GPU.
        revision: branch, tag or commit of ``model``; default: the main branch.
        engine: engine for ``model``: ``vllm``, ``sglang`` or ``llamacpp``. Default: llama.cpp for
            GGUF files, otherwise vLLM.
        image: the catalog's image for ``model``; default: the engine's stock image.
        port: TCP port that clients connect to.
        bind: address that clients connect to; default ``0.0.0.0`` behind the proxy, ``127.0.0.1``
            without the proxy.
        proxy: whether HAProxy listens on bind and port, checks the key and passes only client
            routes (docs/proxy.md).
        served_names: names instead of the recipe's; the first is the main name.
        image_tag: tag instead of the image's newest.
        cluster: name of ``clusters`` whose hosts serve the model together; each of these hosts has
            this service, and the recipe sets ``ranks`` (docs/clusters.md).
        gpus: GPUs for the container, by UUID or index of ``nvidia-smi -L``; default: all GPUs.
        arguments: ``vllm serve`` arguments that override the recipe's; None removes an argument.
        environment: variables that override the recipe's; None removes a variable.
        files: files that the container reads; they override the recipe's files with the same ``at``
            (docs/services.md).
        secrets: secrets that the container reads, such as a tool server's token, besides
            the recipe's (docs/services.md).
        boot_seconds: deadline for ``/health`` instead of the recipe's.
        first_answer_seconds: deadline for the first generation after ``/health`` instead
            of the recipe's.
        media_domains: hosts whose images, videos and audio the engine fetches when a request names
            their URL, such as ``upload.wikimedia.org``. Default: none; requests carry ``data:``
            URLs.
        smoke: the service's smoke test.
        outgoing: whether the container may open connections; ``media_domains`` also allows
            connections. Otherwise the container has no network behind the proxy, and an isolated
            network without the proxy.
        hardening: ``strict`` also makes the container's root file system read-only and its written
            files temporary.
        boot_caches: whether the host keeps the engine's compiled code, per image, GPU and driver.
            Default: yes, except with ``strict``.
        exceptions: exceptions to the container's restrictions, with reasons, besides the recipe's.
        silenced: rule -> reason for ignoring it; every run repeats the reason.
        exclusive: name of a group. Only one service per group runs: the first in the file, until
            you activate another service (docs/services.md).
        activate: ``on-request``: a client's request activates the service while another service of
            its group runs. This setting needs ``exclusive`` and ``proxy``.
        idle: idle time after which the service stops until the next request (docs/services.md).
            This setting needs ``proxy``, and in an exclusive group ``activate``.
        adapters: LoRA adapters of the recipe's model, each served as a model; they override the
            recipe's adapters by name.
        kv_offload: space outside GPU memory for the KV cache of earlier conversations; replaces the
            recipe's; None removes it.
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
    files: tuple[file_entries.File, ...] = ()
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
    idle: IdleSettings | None = None
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
            raise ValueError("only a service with 'model' has this setting; leave it out")
        return value

    @property
    def repository(self) -> str:
        """Repository of ``model``."""
        return split(self.model or "/")[0]

    @property
    def choice(self) -> str:
        """Quantization or file in ``model``; empty for a whole repository."""
        return split(self.model or "/")[1]

    @property
    def address(self) -> str:
        """Address that clients connect to. Without a proxy, only the host itself may connect, since
        vLLM's own key check leaves routes open.
        """
        return self.bind or ("0.0.0.0" if self.proxy else LOOPBACK)


class OpenWebuiSettings(_Settings):
    """Open WebUI beside an address for all models, on its own port.

    Attributes:
        port: TCP port that browsers use, at the address's ``bind``.
        tag: tag of ghcr.io/open-webui/open-webui. The default is pinned by digest.
        key: name in ``keys`` of the API key that Open WebUI sends to the address.
        environment: further variables of Open WebUI.
    """

    port: values.Port = 3000
    tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")] = "v0.11.3"
    key: str = "open-webui"
    environment: dict[data.VariableName, str] = {}


class AddressSettings(_Settings):
    """One address for all models of the inventory, on the host that has this setting.

    Attributes:
        port: TCP port that clients use.
        bind: address to listen on; ``*`` is every IPv4 address.
        open_webui: Open WebUI as a web page for these models (docs/proxy.md).
    """

    port: values.Port = 8080
    bind: values.Address = "*"
    open_webui: OpenWebuiSettings | None = None


_Limit = Annotated[values.Whole, Field(ge=1)]


class ClientKeySettings(_Settings):
    """The API key of one client. Without a command, sparkwright makes the key in
    ``.sparkwright/keys/NAME``.

    A key with ``models`` or a limit is valid only at the fleet's ``address``.

    Attributes:
        command: command that prints the key, like api_key_command.
        models: names of models that the key may use; default: every model.
        requests_minute, requests_day: limit of requests; default: none.
        tokens_minute, tokens_day: limit of tokens of prompts and answers. Running requests finish.
    """

    command: Command | None = None
    models: tuple[data.ServedName, ...] | None = Field(default=None, min_length=1)
    requests_minute: _Limit | None = None
    requests_day: _Limit | None = None
    tokens_minute: _Limit | None = None
    tokens_day: _Limit | None = None

    @property
    def limited(self) -> bool:
        """Whether the key has rights or limits, which only the address can enforce."""
        return bool(self.model_dump(exclude={"command"}, exclude_none=True))


class TlsSettings(_Settings):
    """A certificate of your own: PEM files on the controller.

    Attributes:
        certificate: the host's certificate, then the chain to its CA.
        key: the certificate's private key, which only the owner can read.
        ca: CA for clients and the fleet's address to verify the certificate, if the CA is private.
    """

    certificate: values.ControllerFile
    key: values.ControllerFile
    ca: values.ControllerFile | None = None


#: Names (* for any part), addresses and networks of servers.
_Servers = tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._:*/-]+$")], ...]
_Tls = Annotated[
    Annotated[Literal["own"], Tag("[own]")] | Annotated[TlsSettings, Tag("[files]")],
    Discriminator(lambda value: "[own]" if isinstance(value, str) else "[files]"),
]

#: Reserved names, by setting: their kind, and their pattern.
_OWN_NAMES = {
    "services": (
        "unit",
        "gateway|health|models|recover|schedule|switch|wake|watch|(fetch|pull|share)-.*",
    ),
    "keys": ("key", "default|sparkwright|address"),
}


class HostSettings(_Settings):
    """All settings of a host in inventory and group_data.

    Attributes:
        services: services by name.
        clusters: hosts that serve one model together, by name.
        gpu: the host's GPU, for sizing a service that names a ``model``. Default: from the host's
            group, or from other services' recipes.
        image_tag: default ``image_tag`` of the host's services.
        image_mirrors: registry host -> ``http(s)://host:port`` to pull from; address of an image's
            git repository -> address to clone.
        image_keys: pattern of an image's ``host/path`` -> file on the controller with its
            publisher's public key (cosign.pub). Images without this signature are not deployed
            (docs/security.md). The first matching pattern counts.
        private_servers: names (* for any part), addresses and networks (``10.0.0.0/8``) to which an
            internet registry, hub or git server may redirect, such as a registry's storage in a
            private network behind a split DNS. Other private addresses are refused. Through an HTTP
            proxy, which resolves names itself, only addresses in URLs are compared.
        hub_endpoint: address of the hub for queries and downloads.
        hub_token_file: file on the controller with a token for gated models; default: the
            environment's HF_TOKEN.
        hub_token_command: command that prints the token: a list of words, run once per run on the
            controller without a shell.
        models_root: directory of models: ``<org>--<name>/<commit>/``.
        services_root: directory of services, releases, runtime and job state.
        registry_auth_file: file on the controller with accounts of private registries, in the form
            of ``docker login`` (``config.json``).
        registry_auth_command: command that prints the content of
            registry_auth_file, like hub_token_command.
        downloader: ``hf_transfer``, ``xet`` (the hub's Xet storage where available,
            otherwise hf_transfer) or ``http`` (a tenth of the memory).
        download_connections: parallel ranges per file.
        download_limit_mb: limit of a host in megabytes per second, for the image and for each
            model; None for no limit.
        peer_sharing: whether hosts share downloads, so that each file comes over the internet once.
        peer_port: TCP port on which hosts serve each other.
        http_proxy: ``http://host:port`` without an account, for hub, registries and the
            distribution's packages. LAN hosts are reached directly: private addresses, names
            without a dot or in ``.local``, ``.lan``, ``.internal`` and ``.home.arpa``.
        no_proxy: further names and addresses to reach directly.
        lan_address: address of this host for other hosts; default: as for the controller.
        adopt_directories: directories of hosts (* for any part) with earlier downloads; files with
            the right content are copied instead of downloaded.
        allowed_pickles: pattern of ``org/name/path`` -> reason for downloading these
            pickles, which run code when loaded.
        allowed_in_recipes: arguments (``kv_transfer_config``, or one key of it as ``argument.key``)
            and variables that imported recipes may set beyond the engine's list of harmless names
            -> reason.
        schedule: exclusive service -> hours in which it runs instead of its group's first service,
            such as ``Mon..Fri 08:00..18:00`` or ``Sat,Sun 22:00..06:00``, by the host's clock
            (docs/services.md).
        activation: activation of services by requests, with ``activate = "on-request"``.
        address: one address for all models of the inventory, on this host (docs/proxy.md).
        rollout: roll-out to hosts that already serve.
        take_over: whether to stop, and keep, a container that was started by hand on a service's
            port; ``sparkwright remove`` starts it again.
        break_lock: whether to take over a host's lock from another run; for the command line.
        keep_releases: releases kept per service, with images and weights, for rollbacks;
            ``sparkwright models prune`` removes older releases.
        bundle: directory on the controller, made by ``sparkwright bundle``, that replaces hub and
            registry.
        watch: whether a timer on the host checks services, GPU and disks every minute.
        drop_caches: whether a GB10 drops its page cache before a service starts: the GPU shares
            that memory, and a full cache has made loading weights fail.
        second_boot: whether a switch on a GB10 starts a service again after a start that compiled,
            since the compiler's peak memory reduces the KV cache.
        disk_headroom_gib: GiB that must stay free after all downloads.
        api_key_file: file on the controller with the fleet's API key; generated if missing. The
            environment's SPARKWRIGHT_API_KEY takes precedence.
        api_key_command: command that prints the fleet's API key and takes precedence over the
            file, like hub_token_command; for a store such as ``pass``, ``op`` or ``sops``.
        tls: ``"own"``: https with certificates of the site's own CA, made on the controller; or
            your own certificate and key. None: http.
        keys: API keys by client name, besides the fleet's own key. Proxies log the name; keys
            can be rotated and revoked (docs/proxy.md).
        sidecars: name of another program on the host -> GiB of memory to reserve for it.
        bootstrap: steps that prepare a bare host; default: none (docs/install.md).
        bootstrap_sources: step -> source of its packages.
        bootstrap_reboot: whether to reboot a host whose new driver needs it, and wait; for the
            command line.
        fabric_addresses: static addresses of ConnectX-7 ports, which only ``sparkwright
            fabric addresses`` writes (docs/clusters.md). Set ``fabric_addresses`` in
            group_data/all.py.
        catalog_directories: your catalogs, read after the shipped catalog.
        registries: name -> git repository (``https://…`` or a path of the controller) of recipes
            for ``sparkwright import @NAME``. The lock pins each registry to a commit. Hosts serve
            only imported content; a service that names a model also uses arguments of vLLM's own
            recipes (docs/own-models.md).
        inventory: the site's inventory, if inventory/ has several files and neither command line
            nor SPARKWRIGHT_INVENTORY names an inventory; read from group_data/all.py.
        lock_file: the lock of ``sparkwright lock``. If you name a file, it must exist.
        notify: addresses of ``sparkwright notify``: ``ntfy:TOPIC`` or ``ntfy:https://HOST/TOPIC``,
            ``mailto:NAME@DOMAIN?smtp=HOST:PORT``, ``webhook:https://HOST/PATH``
            (docs/monitoring.md).
        notify_file: file on the controller with further addresses, one per line: addresses that
            contain a secret, and any URL of Apprise (``tgram://…``, ``discord://…``).
        notify_command: command that prints further addresses, like hub_token_command.
    """

    services: dict[values.ServiceName, ServiceSettings]
    clusters: dict[values.ServiceName, ClusterSettings] = {}
    gpu: Card | None = None
    image_tag: str | None = None
    image_mirrors: dict[str, Annotated[str, Field(pattern=r"^https?://[^/\s]+\S*$")]] = {}
    image_keys: dict[str, values.ControllerFile] = {}
    private_servers: _Servers = ()
    hub_endpoint: values.HttpAddress = "https://huggingface.co"
    hub_token_file: values.ControllerFile | None = None
    hub_token_command: Command | None = None
    models_root: values.OwnDirectory = "/opt/models"
    services_root: values.OwnDirectory = "/opt/sparkwright"
    downloader: Literal["hf_transfer", "xet", "http"] = "hf_transfer"
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
    bootstrap: tuple[bootstrap_settings.Step, ...] = ()
    bootstrap_sources: dict[bootstrap_settings.Packaged, bootstrap_settings.PackageSource] = {}
    bootstrap_reboot: bool = False
    fabric_addresses: fabric.FabricAddresses | None = None
    catalog_directories: tuple[values.ControllerPath, ...] = ()
    registries: dict[RegistryName, RegistryAddress] = {}
    sidecars: dict[str, Annotated[values.Gib, Field(gt=0)]] = {}
    inventory: values.ControllerFile | None = None
    lock_file: values.ControllerFile = "fleet.lock"
    notify: tuple[notices.NoticeAddress, ...] = ()
    notify_file: values.ControllerFile | None = None
    notify_command: Command | None = None

    @property
    def api_key_source(self) -> Source:
        """Source of the fleet's API key."""
        return self.api_key_command or self.api_key_file

    @property
    def hub_token_source(self) -> Source | None:
        """Source of the token for gated models."""
        return self.hub_token_command or self.hub_token_file

    @property
    def registry_auth_source(self) -> Source | None:
        """Source of the accounts of private registries."""
        return self.registry_auth_command or self.registry_auth_file

    @field_validator("services", "keys")
    @classmethod
    def _names_are_free(cls, entries: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        kind, own = _OWN_NAMES[str(info.field_name)]
        for name in entries:
            if re.fullmatch(own, name):
                raise ValueError(
                    f"{name!r} is reserved: sparkwright itself has a {kind} of this name"
                )
        return entries

    @field_validator("services")
    @classmethod
    def _idle_has_a_group(cls, services: dict[str, ServiceSettings]) -> dict[str, ServiceSettings]:
        """Put each service that stops when idle into its own group, with a name that settings can't
        have.
        """
        for name, service in services.items():
            if service.idle is not None and service.exclusive is None:
                own = {"exclusive": f"idle.{name}", "activate": "on-request"}
                services[name] = service.model_copy(update=own)
        return services

    @field_validator("image_mirrors")
    @classmethod
    def _registries_have_no_path(cls, mirrors: dict[str, str]) -> dict[str, str]:
        for name, address in mirrors.items():
            if "://" not in name and urlsplit(address).path.strip("/"):
                raise ValueError(f"the mirror of {name} must be http(s)://host:port without a path")
        return mirrors
