"""``sparkwright bundle``: all that a lock names in one directory, for sites without internet.

The fetch program of the hosts fetches it here too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import click

from sparkwright.cli.lib.options import (
    data_option,
    inventory_and,
    json_option,
    limit_option,
    print_json,
)
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.places import PACKAGE
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.host.fetch.request import FetchFile, FetchRequest, document
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve import build_context
from sparkwright.resolve.credentials import account, hub_token
from sparkwright.resolve.lock import read_lock, render_lock
from sparkwright.resolve.packages import collect
from sparkwright.resolve.pickles import fetched
from sparkwright.resolve.references import ImageReference, hex_digits
from sparkwright.resolve.registry import PlatformImage, ResolvedImage
from sparkwright.resolve.resolution import Resolution
from sparkwright.resolve.runtime import RuntimeBundleError, build_runtime, carried_runtime
from sparkwright.site.resolution import pinned

_PROGRAM = PACKAGE / "host/fetch/fetch.py"
#: What registries call an architecture -> what Python calls it.
_MACHINES = {"arm64": "aarch64", "amd64": "x86_64"}


@click.command("bundle")
@inventory_and(directory=click.Path(path_type=Path, file_okay=False))
@data_option
@limit_option
@click.option(
    "--architecture",
    "architectures",
    multiple=True,
    type=click.Choice(sorted(_MACHINES)),
    help="Only this one of an image (repeatable); all that the lock has otherwise.",
)
@click.option(
    "--packages",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Debian packages of HAProxy for hosts without internet (docs/sharing-and-offline.md); "
    "the lock pins them.",
)
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    directory: Path,
    architectures: tuple[str, ...],
    packages: Path | None,
    as_json: bool,
) -> None:
    """Fetch everything that the locked plan needs into DIRECTORY.

    Carry the directory and this project to the other site, and deploy there with
    --data 'bundle="DIRECTORY"': hosts then take everything from the controller, and nobody asks
    outside. Run it again to go on after a cut, or to bring the directory up to date.
    """
    plans = [host.plan for host in load(inventory, overrides, limit).or_raise().values()]
    _locked(plans)
    resolution = pinned(load(inventory, overrides, limit).or_raise())
    directory.mkdir(parents=True, exist_ok=True)
    failed = [
        name
        for name, request, secret in _requests(
            plans, resolution, directory.resolve(), architectures
        )
        if not _fetch(name, request, secret, quiet=as_json)
    ]
    _contexts(plans, resolution, directory)
    _runtimes(plans, resolution, directory, architectures)
    pins = collect(packages, directory) if packages else None
    for lock in sorted({plan.settings.lock_file for plan in plans}):
        if pins and (known := read_lock(Path(lock))):
            Path(lock).write_text(render_lock(known.model_copy(update={"packages": pins})))
        shutil.copyfile(lock, directory / Path(lock).name)
    total = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    if as_json:
        print_json({"directory": str(directory), "bytes": total, "missing": failed})
        sys.exit(int(bool(failed)))
    if failed:
        echo(f"not whole: {', '.join(failed)}. Run it again to go on.", err=True)
        sys.exit(1)
    echo(f"{directory}: {total / 1e9:.2f} GB, whole. Deploy with --data 'bundle=\"...\"'.")


def _locked(plans: list[HostPlan]) -> None:
    missing = sorted(
        {p.settings.lock_file for p in plans if read_lock(Path(p.settings.lock_file)) is None}
    )
    if missing:
        raise UserError(
            mistake(path, "there is no lock, and a site without internet needs one",
                    "sparkwright lock INVENTORY")
            for path in missing
        )  # fmt: skip


def _requests(
    plans: list[HostPlan],
    resolution: Resolution,
    directory: Path,
    architectures: tuple[str, ...],
) -> Iterator[tuple[str, FetchRequest, str | None]]:
    """What is to be fetched, each once: a name, a request without state_dir, and its secret."""
    done: set[object] = set()
    for plan in plans:
        for service in plan.services:
            for reference in service.models:
                settings = plan.settings
                every = resolution.model(reference)
                model = fetched(every, settings.allowed_pickles)
                if (key := (model.directory, len(model.files))) not in done:
                    done.add(key)
                    token = hub_token(plan.settings.hub_token_source)
                    request = FetchRequest(
                        endpoint=plan.settings.hub_endpoint,
                        repo=model.repository,
                        revision=model.commit,
                        destination=str(directory / "models" / model.directory),
                        state_dir="",
                        files=model.to_fetch,
                        downloader=plan.settings.downloader,
                        max_connections=plan.settings.download_connections,
                    )
                    yield model.repository, request, token.value if token else None
            image = resolution.image(service.image)
            if image.digest not in done:
                done.add(image.digest)
                source = service.image.pulled
                secret = account(plan.settings.registry_auth_source, source.registry)
                request = _image(plan, source, image, directory, architectures)
                yield source.name, request, secret


def _image(
    plan: HostPlan,
    source: ImageReference,
    image: ResolvedImage,
    directory: Path,
    architectures: tuple[str, ...],
) -> FetchRequest:
    platforms = _platforms(image, architectures)
    sizes = {name: size for one in platforms for name, size in one.files.items()}
    digest = hex_digits(image.digest)
    return FetchRequest(
        source="registry",
        endpoint=source.registry,
        repo=source.repository,
        revision=digest,
        destination=str(directory / "images" / digest),
        state_dir="",
        files=tuple(FetchFile(name, size, name) for name, size in sizes.items()),
        manifests=tuple(
            sorted({hex_digits(digest) for one in platforms for digest in one.manifests})
        ),
        downloader="http",
        max_connections=plan.settings.download_connections,
    )


def _platforms(image: ResolvedImage, architectures: tuple[str, ...]) -> list[PlatformImage]:
    return [
        platform
        for name, platform in image.platforms.items()
        if name in _MACHINES and (not architectures or name in architectures)
    ]


def _fetch(name: str, request: FetchRequest, secret: str | None, *, quiet: bool) -> bool:
    echo(f"{name}:", err=quiet)
    with tempfile.TemporaryDirectory(prefix="sparkwright-bundle-") as folder:
        file = Path(folder, "secret")
        if secret:
            file.touch(mode=0o600)
            file.write_text(secret, encoding="utf-8")
        place = Path(folder, "request.json")
        complete = replace(request, state_dir=folder, token_file=str(file) if secret else None)
        place.write_text(document(complete), encoding="utf-8")
        found = find_spec("hf_transfer")
        assert found is not None
        assert found.origin is not None
        libraries = Path(found.origin).parents[1]
        words = [sys.executable, "-I", "-S", str(_PROGRAM), "--runtime", str(libraries)]
        sys.stdout.flush()
        done = subprocess.run([*words, str(place)], check=False, env=_plain(),
                              stdout=sys.stderr if quiet else None)  # fmt: skip
        return done.returncode == 0


def _plain() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("HF_")}


def _contexts(plans: list[HostPlan], resolution: Resolution, directory: Path) -> None:
    for service in (service for plan in plans for service in plan.services):
        build, image = service.image.build, resolution.image(service.image)
        if build and image.commit:
            files = build_context.build_context(
                build.context, image.commit, build.directory, directory / "build"
            )
            build_context.verify(files, image.context, carried=True)


def _runtimes(
    plans: list[HostPlan],
    resolution: Resolution,
    directory: Path,
    architectures: tuple[str, ...],
) -> None:
    """The fetch program's libraries, for every kind of host that the images are for."""
    names = {
        name
        for plan in plans
        for service in plan.services
        for name in resolution.image(service.image).platforms
        if name in _MACHINES and (not architectures or name in architectures)
    }
    for name in sorted(names):
        try:
            build_runtime(_MACHINES[name], directory / "runtime")
            carried_runtime(_MACHINES[name], directory / "runtime")
        except RuntimeBundleError as error:
            raise UserError([mistake(f"libraries for {name}", str(error), "try again")]) from None
