"""Open WebUI beside the address for all models."""

from sparkwright.config import inventory, secrets
from sparkwright.config.keys import Keys
from sparkwright.config.settings import EVERY_ADDRESS
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy import haproxy, pools
from sparkwright.resolve.lock import Resolution
from sparkwright.tls.host_certificates import identity


def page_of(
    plan: HostPlan, everyone: pools.Everyone, keys: Keys, resolution: Resolution, *, dry: bool
) -> haproxy.Page | None:
    """Open WebUI of a host, which uses the address's LAN name; None without Open WebUI."""
    settings = plan.settings
    page = settings.address and settings.address.open_webui
    images = [image for image in plan.page_images if image.name in resolution.images]
    if not (settings.address and page and images):
        return None
    bind, own = settings.address.bind, everyone[plan.host]
    name = inventory.lan_address(plan.host, own) if bind in EVERY_ADDRESS else bind
    place = haproxy.endpoint(name, settings.address.port)
    verified = identity(plan.host, plan.tls, dry=dry)
    key, *_ = keys.clients.get(page.key) or (secrets.Secret(""),)
    return haproxy.Page(
        resolution.image(images[0]).local_name(images[0]),
        f"{'https' if verified else 'http'}://{place}/v1",
        {"OPENAI_API_KEY": key, "WEBUI_SECRET_KEY": keys.page},
        verified.ca if verified else None,
        page.environment,
    )
