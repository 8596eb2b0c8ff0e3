"""``sparkwright bundle``: all contents of a lock in one directory, for sites without internet.

The controller runs the same fetch program as the hosts.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path

import click

from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.output import MESSAGES, echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.places import PACKAGE
from sparkwright.config.settings import HostSettings
from sparkwright.findings.user_error import Problems, refusal
from sparkwright.host.fetch.request import FetchFile, FetchRequest, document
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.resolve import build_context, credentials, pickles, registry
from sparkwright.resolve.lock import Resolution
from sparkwright.resolve.references import hex_digits
from sparkwright.resolve.runtime import RuntimeBundleError, build_runtime, carried_runtime
from sparkwright.site.resolution import locks, pinned

_PROGRAM = PACKAGE / "host/fetch/fetch.py"
#: Name of an architecture in a registry -> name in Python.
_MACHINES = {"arm64": "aarch64", "amd64": "x86_64"}


@click.command("bundle")
@selection.names_argument()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@options.option("bundle --architecture", type=click.Choice(sorted(_MACHINES)))
@options.json_option
def command(
    hosts: selection.Selection, directory: Path, architectures: tuple[str, ...], as_json: bool
) -> None:
    """Fetch everything that the locked plan needs into DIRECTORY.

    Carry the directory and this project to the other site, and deploy there with --data
    'bundle="DIRECTORY"': hosts then fetch everything from the controller and need no internet
    access. Run the command again to continue after an interruption, or to update the directory.
    """
    planned = load(hosts).or_raise()
    plans = [host.plan for host in planned.values()]
    locked = locks(planned)
    Problems(MESSAGES.mistake("no-lock", path) for path, lock in locked.items() if not lock).stop()
    bundle = _Bundle(plans, pinned(planned), directory, set(architectures or _MACHINES))
    directory.mkdir(parents=True, exist_ok=True)
    failed = [
        name
        for name, request, secret in bundle.requests()
        if not _fetch(name, request, secret, quiet=as_json)
    ]
    _contexts(bundle)
    _runtimes(bundle)
    for path in locked:
        shutil.copyfile(path, directory / Path(path).name)
    total = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    if as_json:
        options.print_json({"directory": str(directory), "bytes": total, "missing": failed})
    elif failed:
        echo(f"incomplete: {', '.join(failed)}. Run the command again to continue.", err=True)
    else:
        echo(f"{directory}: {total / 1e9:.2f} GB, complete. Deploy with --data 'bundle=\"...\"'.")
    sys.exit(int(bool(failed)))


@dataclass(frozen=True)
class _Bundle:
    """Contents that the hosts' plans need according to the lock, for these architectures."""

    plans: list[HostPlan]
    resolution: Resolution
    directory: Path
    architectures: set[str]

    @property
    def services(self) -> Iterator[tuple[HostSettings, ServicePlan, registry.ResolvedImage]]:
        """Yield every service of every host, with the host's settings and the service's image."""
        for plan in self.plans:
            for service in plan.services:
                yield plan.settings, service, self.resolution.image(service.image)

    def platforms(self, image: registry.ResolvedImage) -> dict[str, registry.PlatformImage]:
        """Return the requested platforms of an image, by architecture."""
        wanted = _MACHINES.keys() & self.architectures
        return {name: image.platforms[name] for name in image.platforms if name in wanted}

    def requests(self) -> Iterator[tuple[str, FetchRequest, str | None]]:
        """Yield every fetch once: its name, its request without state_dir, and its secret."""
        done: set[object] = set()
        folder = self.directory.resolve()
        for settings, service, image in self.services:
            for reference in service.models:
                every = self.resolution.model(reference)
                model = pickles.fetched(every, (*settings.allowed_pickles, *reference.code))
                if (key := (model.directory, len(model.files))) not in done:
                    done.add(key)
                    token = credentials.hub_token(settings.hub_token_source)
                    request = FetchRequest(
                        endpoint=settings.hub_endpoint,
                        repo=model.repository,
                        revision=model.commit,
                        destination=str(folder / "models" / model.directory),
                        state_dir="",
                        files=model.to_fetch,
                        downloader=settings.downloader,
                        max_connections=settings.download_connections,
                    )
                    yield model.repository, request, token.value if token else None
            if image.digest not in done:
                done.add(image.digest)
                source = service.image.pulled
                platforms = self.platforms(image).values()
                sizes = {name: size for part in platforms for name, size in part.files.items()}
                manifests = {hex_digits(name) for part in platforms for name in part.manifests}
                digest = hex_digits(image.digest)
                request = FetchRequest(
                    source="registry",
                    endpoint=source.registry,
                    repo=source.repository,
                    revision=digest,
                    destination=str(folder / "images" / digest),
                    state_dir="",
                    files=tuple(FetchFile(name, size, name) for name, size in sizes.items()),
                    manifests=tuple(sorted(manifests)),
                    downloader="http",
                    max_connections=settings.download_connections,
                )
                secret = credentials.account(settings.registry_auth_source, source.registry)
                yield source.name, request, secret


def _fetch(name: str, request: FetchRequest, secret: str | None, *, quiet: bool) -> bool:
    echo(f"{name}:", err=quiet)
    with tempfile.TemporaryDirectory(prefix="sparkwright-bundle-") as folder:
        file, request_file = Path(folder, "secret"), Path(folder, "request.json")
        if secret:
            file.touch(mode=0o600)
            file.write_text(secret, encoding="utf-8")
        complete = replace(request, state_dir=folder, token_file=str(file) if secret else None)
        request_file.write_text(document(complete), encoding="utf-8")
        libraries = Path(str(distribution("hf_transfer").locate_file("")))
        arguments = [sys.executable, "-I", "-S", str(_PROGRAM), "--runtime", str(libraries)]
        sys.stdout.flush()
        plain = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        done = subprocess.run([*arguments, str(request_file)], check=False, env=plain,
                              stdout=sys.stderr if quiet else None)  # fmt: skip
        return done.returncode == 0


def _contexts(bundle: _Bundle) -> None:
    """Fetch the build contexts of images that are built."""
    for _, service, image in bundle.services:
        if (build := service.image.build) and image.commit:
            source = build.context, image.commit, build.directory
            files = build_context.build_context(*source, bundle.directory / "build")
            build_context.verify(files, image.context, carried=True)


def _runtimes(bundle: _Bundle) -> None:
    """Build the fetch program's libraries for every architecture that the images support."""
    folder = bundle.directory / "runtime"
    for name in sorted({name for *_, image in bundle.services for name in bundle.platforms(image)}):
        try:
            build_runtime(_MACHINES[name], folder)
            carried_runtime(_MACHINES[name], folder)
        except RuntimeBundleError as error:
            raise refusal(f"libraries for {name}", str(error), "try again") from None
