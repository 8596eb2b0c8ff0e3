"""The address for all models on a host: its program, document and units."""

import json
import shlex

from pyinfra.context import ctx_host

from sparkwright.config.secrets import SecretText
from sparkwright.config.templates import template
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import entry, laid_out
from sparkwright.host.lib.records import encode
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.models import setup as program
from sparkwright.host.models.document import DOOR, PAGE, PAGE_DATA, PAGE_SOCKET, Door
from sparkwright.host.models.setup import SERVICE, SOCKET, USERS, AddressRequest
from sparkwright.host.observe import ObservationRequest
from sparkwright.operations.files import Files, unlike
from sparkwright.operations.lib.changing import Commands, act_by, change, operation
from sparkwright.proxy.haproxy import USER, Page, Proxies


@operation()
def present(files: Files) -> Commands:
    """Install the program behind the address for all models, or remove it. The usage counts stay.

    Args:
        files: files that ``files_of`` makes from the address's document; empty for a host without
            the address.

    **Example:**

    .. code:: python

        address.present(files={})
    """
    host = ctx_host.get()
    root = memory(host).services_root
    state = observed(host, request_of(files, root))
    units = [unit for unit in (SOCKET, PAGE) if f"{UNITS}/{unit}" in files]
    pending = unlike(files, units, state, _document(root), "remove the address for all models")
    if files and PAGE not in units and state.files.get(f"{UNITS}/{PAGE}"):
        pending.append("remove Open WebUI")
    request = AddressRequest(_home(root), dict(files), f"{Proxies(()).runtime}/pools", USER)
    yield from change(
        pending, act_by(program, request),
        otherwise="the address for all models is as desired" if files else "no address is planned",
    )  # fmt: skip


def files_of(door: Door | None, services_root: str) -> dict[str, tuple[str, int]]:
    """Return the files of the address for all models; empty without an address."""
    if door is None:
        return {}
    # The import takes 5 ms, and only hosts with an address need it.
    from sparkwright.host.models import serve

    home = _home(services_root)
    context = {"home": home, "document": _document(services_root), "socket": DOOR, "user": USER}
    files = {path: (text, 0o644) for path, text in laid_out(home, serve).items()}
    files[f"{home}/serve.py"] = (entry(home, serve), 0o644)
    files[str(USERS)] = (f'u {USER} - "sparkwright, one address for all models"\n', 0o644)
    for unit in (SOCKET, SERVICE):
        text = template(f"gateway/{unit.removeprefix('sparkwright-')}.j2").render(context)
        files[f"{UNITS}/{unit}"] = (text, 0o644)
    files[_document(services_root)] = (json.dumps(encode(door), indent=1) + "\n", 0o644)
    return files


def page_files(page: Page | None, services_root: str) -> dict[str, tuple[str, int]]:
    """Files of Open WebUI; empty without Open WebUI."""
    if page is None:
        return {}
    home = f"{_home(services_root)}/open-webui"
    context = {"page": page, "home": home, "socket": PAGE_SOCKET, "data": PAGE_DATA}
    lines = [f"{name}={shlex.quote(secret.value)}\n" for name, secret in page.secrets.items()]
    return {
        f"{home}/secrets.env": (SecretText("".join(lines)), 0o600),
        f"{home}/compose.yaml": (template("gateway/open-webui.yaml.j2").render(context), 0o644),
        **({f"{home}/ca.crt": (page.ca, 0o644)} if page.ca else {}),
        f"{UNITS}/{PAGE}": (template("gateway/open-webui.service.j2").render(context), 0o644),
    }


def request_of(files: Files, services_root: str) -> ObservationRequest:
    """Request for the observation of these files and their socket."""
    paths = tuple({**files, _document(services_root): None, f"{UNITS}/{PAGE}": None})
    return ObservationRequest(files=paths, units=(SOCKET, PAGE) if files else ())


def _home(services_root: str) -> str:
    return f"{services_root}/address"


def _document(services_root: str) -> str:
    return f"{_home(services_root)}/models.json"
