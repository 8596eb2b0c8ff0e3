"""Open WebUI beside the address for all models."""

from sparkwright.config import inventory, secrets
from sparkwright.config.keys import Keys
from sparkwright.config.settings import EVERY_ADDRESS
from sparkwright.engines import engine
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.proxy import haproxy
from sparkwright.proxy.pools import Everyone, Pools
from sparkwright.resolve.lock import Resolution
from sparkwright.tls.host_certificates import identity

#: Open WebUI's pages send their own tools with every message, unless the model's settings turn the
#: tools off.
WITHOUT_TOOLS = {"DEFAULT_MODEL_METADATA": '{"capabilities": {"builtin_tools": false}}'}


def page_of(
    plan: HostPlan, pools: Pools, hosts: Everyone, keys: Keys, resolution: Resolution, *, dry: bool
) -> haproxy.Page | None:
    """Return a host's Open WebUI, which uses the address's LAN name; None without Open WebUI.

    Args:
        pools: pools of all hosts. If a service in the pools refuses tools, pages send no tools.
        hosts: data of every host of the inventory.
    """
    address = plan.settings.address
    page = address and address.open_webui
    images = [image for image in plan.page_images if image.name in resolution.images]
    if not (address and page and images):
        return None
    name = address.bind
    if name in EVERY_ADDRESS:
        name = inventory.lan_address(plan.host, hosts[plan.host])
    place = haproxy.endpoint(name, address.port)
    verified = identity(plan.host, plan.tls, dry=dry)
    services = [service for pool in pools for service in pool.services.values()]
    key, *_ = keys.clients.get(page.key) or (secrets.Secret(""),)
    return haproxy.Page(
        resolution.image(images[0]).local_name(images[0]),
        f"{'https' if verified else 'http'}://{place}/v1",
        {"OPENAI_API_KEY": key, "WEBUI_SECRET_KEY": keys.page},
        verified.ca if verified else None,
        page.environment if all(map(_takes_tools, services)) else WITHOUT_TOOLS | page.environment,
    )


def _takes_tools(service: ServicePlan) -> bool:
    """Return whether a service answers chats with tools, or no chats at all."""
    program, arguments = engine(service.engine), dict(service.arguments)
    chats = "chat" in program.kinds(arguments, service.task)
    return not chats or program.limits(arguments).tools is not None
