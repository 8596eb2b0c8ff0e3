"""The services of a host: rendered, with the files of their keys and their directories."""

from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.engines import engine
from sparkwright.host.directories import Directory
from sparkwright.host.ranks.link import KEY
from sparkwright.host.service import Service
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.service import render_service, service_home
from sparkwright.proxy.proxies import leave_and_return
from sparkwright.resolve.resolution import Resolution


def rendered(
    plan: HostPlan, resolution: Resolution, *, others: frozenset[str] = frozenset()
) -> tuple[Service, ...]:
    """Render every service of a host.

    Args:
        others: its services that other hosts serve too, behind one address.
    """
    rollout = plan.settings.rollout
    return tuple(
        render_service(
            plan,
            service,
            resolution,
            pool=leave_and_return(rollout, service.name, others=service.name in others)
            if service.proxy
            else None,
        )
        for service in plan.services
    )


def secrets_of(plan: HostPlan, keys: Keys) -> dict[str, Secret]:
    """Texts of the files with the services' keys, by path."""
    secrets = {}
    for service in plan.services:
        home = service_home(plan, service)
        # Behind a proxy no client's key is the engine's: they change without a restart.
        key = keys.engine if service.proxy else keys.default
        variable = engine(service.engine).key_variable
        secrets[f"{home}/secrets.env"] = Secret(f"{variable}={key.value}\n")
        for own in service.settings.secrets:
            if secret_text := keys.services.get((service.name, own.name)):
                secrets[f"{home}/secrets/{own.name}"] = secret_text
        if service.rank:
            secret = Secret(f"{KEY}={keys.ranks[service.rank.cluster].value}\n")
            # A follower answers nobody: it has no key of the engine's.
            name = "secrets" if service.follower else "ranks"
            secrets[f"{home}/{name}.env"] = secret
    return secrets


def directories(plan: HostPlan) -> tuple[Directory, ...]:
    """The directories of a host, parents first. The first one, of the models, may be a file system
    of its own or belong to the user: it is made when it is not there, and else left alone."""
    root = plan.settings.services_root
    result = [Directory(plan.settings.models_root), Directory(root)]
    result += [Directory(f"{root}/{name}") for name in ("services", "runtime")]
    result += [Directory(f"{root}/{name}", 0o700) for name in ("state", "images")]
    for service in plan.services:
        home = service_home(plan, service)
        result += [Directory(home, 0o750), Directory(f"{home}/releases", 0o750)]
        result += [Directory(path, 0o700) for path in (service.offload_directory,) if path]
    return tuple(result)
