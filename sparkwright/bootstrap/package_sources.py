"""Package sources and package names of each step on each type of machine (sources.yaml)."""

from dataclasses import dataclass, replace
from functools import cache, partial

from sparkwright.bootstrap.box import Box
from sparkwright.config.bootstrap_settings import PackageSource
from sparkwright.text.shipped_yaml import beside

#: Step -> kind of machine -> its packages and their repository.
_table = cache(partial(beside, __file__, "sources.yaml"))


@dataclass(frozen=True)
class Repository:
    """An apt repository; ``key`` is a file of the controller or an https address."""

    name: str
    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    key: str
    fingerprint: str | None

    @property
    def list_file(self) -> str:
        """Path of the repository's file on a host."""
        return f"/etc/apt/sources.list.d/sparkwright-{self.name}.sources"

    @property
    def key_file(self) -> str:
        """Path of the repository's key on a host."""
        return f"/etc/apt/keyrings/sparkwright-{self.name}.asc"

    @property
    def text(self) -> str:
        """The file's text (deb822). The key is valid only for this repository."""
        lines = [
            "# Written by sparkwright's bootstrap.", "Types: deb", f"URIs: {self.uri}",
            f"Suites: {' '.join(self.suites)}", f"Signed-By: {self.key_file}",
        ]  # fmt: skip
        if self.components:
            lines.insert(4, f"Components: {' '.join(self.components)}")
        return "\n".join([*lines, ""])


@dataclass(frozen=True)
class Packages:
    """Packages, and their repository; None for the host's own sources."""

    names: tuple[str, ...]
    repository: Repository | None = None


def every_package(step: str) -> list[str]:
    """Names of a step's packages on every type of machine."""
    return [name for entry in _table().get(step, {}).values() for name in entry["packages"]]


def packages_of(step: str, box: Box, source: PackageSource | None) -> Packages:
    """Return a step's packages on a type of machine; ``names`` is empty if the step needs no
    package.

    Args:
        source: the user's own source, which takes precedence.
    """
    usual = _usual(step, box)
    if source is None:
        return usual
    packages = Packages(source.packages or usual.names, usual.repository)
    if source.uri is None or not packages.names:
        return packages
    assert source.key is not None
    return replace(packages, repository=Repository(
        step, source.uri, source.suites, source.components, source.key, source.fingerprint
    ))  # fmt: skip


def _usual(step: str, box: Box) -> Packages:
    boxes, kind = _table().get(step, {}), box.kind.name.lower()
    kinds = (f"{kind}{box.major}", kind, "any")
    entry = next((boxes[name] for name in kinds if name in boxes), None)
    if entry is None:
        return Packages(())
    repository = None
    if given := entry.get("repository"):
        repository = Repository(
            step,
            given["uri"].format(architecture=box.architecture),
            tuple(suite.format(codename=box.codename) for suite in given["suites"]),
            tuple(given.get("components", ())),
            given["key"],
            given["fingerprint"],
        )
    return Packages(tuple(entry["packages"]), repository)
