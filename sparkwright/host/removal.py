"""Remove sparkwright's services from this host. The program runs on the host as root.

If everything is removed, the host is restored to its earlier state: containers that a switch
stopped are started again.
"""

import re
import shutil
from pathlib import Path

from sparkwright.host import disk_usage, fabric_addresses
from sparkwright.host.lib import docker, documents, receipt, records, systemd
from sparkwright.host.models import setup as address


@records.dataclass(frozen=True)
class RemovalRequest:
    """Request to remove services, or everything that is sparkwright's.

    Attributes:
        services: names; None for everything that is sparkwright's.
        weights: whether the models are also removed.
    """

    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    services: tuple[str, ...] | None = None
    weights: bool = False


@records.dataclass(frozen=True)
class RemovalAnswer:
    """Result of a removal: removed and remaining parts, as text."""

    done: tuple[str, ...]
    left: tuple[str, ...]


#: Docker's pattern of a container name, and its restart policies.
_CONTAINER = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_.-]{0,200}( (no|always|unless-stopped|on-failure(:[0-9]{1,9})?)?)?"
)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def unmanaged(services_root: Path) -> list[str]:
    """Return ``name restart-policy`` of unmanaged containers that switches stopped, according to
    the history.
    """
    containers: dict[str, str] = {}
    for line in documents.lines(services_root / "state/history.jsonl"):
        named = line.get("unmanaged")
        for entry in named if isinstance(named, list) else []:
            # The pattern excludes names that Docker would read as options.
            if isinstance(entry, str) and _CONTAINER.fullmatch(entry):
                containers[entry.partition(" ")[0]] = entry
    return list(containers.values())


def weights(root: Path) -> tuple[list[str], list[str]]:
    """Remove the models that sparkwright fetched. Returns the removed and the remaining paths."""
    done, left = [], []
    for path in sorted(root.glob("*/*")):
        linked = path.is_symlink() or path.parent.is_symlink()  # a user owns the link's target
        fetched = disk_usage.REVISION.fullmatch(path.name) and receipt.read(str(path))
        if linked or not (fetched or path.name.startswith(".staging-")):
            left.append(str(path))
            continue
        shutil.rmtree(path)
        if fetched:
            done.append(f"model {path.parent.name}@{path.name[:12]}")
    for folder in [*root.glob("*"), root]:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return done, left


def services(root: Path, names: tuple[str, ...]) -> RemovalAnswer:
    """Remove some services. Returns the result."""
    homes = {name: root / "services" / name for name in names if _NAME.fullmatch(name)}
    there = [name for name, home in homes.items() if home.is_dir()]
    left = [f"service {name!r}: this service does not exist" for name in names if name not in there]
    for name in there:
        systemd.remove([f"sparkwright-{name}.service"])
        left += disk_usage.remove_kv_caches(homes[name].glob("releases/*"))
        shutil.rmtree(homes[name], ignore_errors=True)
    return RemovalAnswer(tuple(f"service {name}" for name in there), tuple(left))


def main(request: RemovalRequest) -> RemovalAnswer:
    """Remove services or everything, and report the result."""
    root = Path(request.services_root)
    if request.services is not None:
        return services(root, request.services)
    back = unmanaged(root)
    units = sorted(path.name for path in systemd.UNITS.glob("sparkwright-*.*") if path.is_file())
    done = [f"unit {unit}" for unit in units]
    jobs = (f"sparkwright-{kind}*" for kind in ("fetch", "pull", "share"))
    systemd.systemctl("stop", "sparkwright-switch.service", *jobs)
    for unit in systemd.TRANSIENT.glob("sparkwright-share-*"):
        unit.unlink()
    shutil.rmtree("/run/sparkwright", ignore_errors=True)
    left = address.remove()
    systemd.remove(unit for unit in units if (systemd.UNITS / unit).exists())
    for image in disk_usage.our_images():
        docker.docker("image", "rm", "--force", image)
        done.append(f"image {image.rpartition(':')[0]}")
    left += disk_usage.remove_kv_caches(root.glob("services/*/releases/*"))
    if root.is_dir():
        shutil.rmtree(root)
        done.append(str(root))
    if fabric_addresses.undo():
        done.append("the addresses of the fabric")
    models = Path(request.models_root)
    if request.weights and models.is_dir():
        gone, stays = weights(models)
        done += gone
        left += [f"{path}: not sparkwright's" for path in stays]
    elif models.is_dir():
        left.append(f"{models}: the models (--weights removes them)")
    for container in back:
        name, _, policy = container.partition(" ")
        docker.docker("update", f"--restart={policy or 'no'}", name)
        docker.docker("start", name)
        done.append(f"container {name} is started again")
    return RemovalAnswer(tuple(done), tuple(left))
