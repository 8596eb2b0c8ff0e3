"""Another host of the lab, freshly installed for a test and removed afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab import fleet, machines
from lab.layout import Machine
from tests.fleet.site import MACHINES, Site


@contextmanager
def as_installed(site: Site, machine: Machine, inventory: str) -> Iterator[None]:
    """Boot the host, and write an inventory with only this host: a group `others` that serves as an
    RTX does.
    """
    site.power_on()
    site.repair()
    machines.remove(machine)
    MACHINES[machine.name] = machine
    fleet.up((machine.name,))
    text = (site.folder / "inventory/virtual.py").read_text()
    text += f"\nsparks = []\nrtx50 = []\nothers = [_host({machine.name!r}, {machine.address!r})]\n"
    text += "others[0][1].update(services=_RTX)\n"
    (site.folder / inventory).write_text(text)
    try:
        yield
    finally:
        machines.remove(machine)
        del MACHINES[machine.name]
        (site.folder / inventory).unlink()
