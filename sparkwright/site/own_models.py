"""Services that name a model's repository: their recipes, before anything else is planned.

What a repository's files say is in the lock; what is not there is asked for, once per run for the
whole fleet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from sparkwright.catalog import Catalog
from sparkwright.config.inventory import HostInput
from sparkwright.config.settings import HostSettings
from sparkwright.engines import DEFAULT, engine, template_marks
from sparkwright.engines.derivation import Derivation, Gpu, Subject
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.recipes.advice import advice, look_up
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.hub_token import hub_token
from sparkwright.resolve.lock import Lock, read_lock
from sparkwright.resolve.recipe_registry import snapshot
from sparkwright.site.gpu import gpu_of, gpu_question
from sparkwright.site.recipe_choice import recipe_for

#: Hub, repository, revision.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class ReadHost:
    """A host's settings and catalog, with a recipe for each of its services.

    Attributes:
        derivations: service -> where the values of its recipe come from.
        known: models that were asked for, or are in the lock with what their files say.
    """

    given: HostInput
    settings: HostSettings
    catalog: Catalog
    derivations: Mapping[str, Derivation] = field(default_factory=dict)
    known: Mapping[Key, ResolvedModel] = field(default_factory=dict)


def with_recipes(hosts: Sequence[ReadHost], *, anew: bool) -> tuple[list[ReadHost], list[Finding]]:
    """The hosts with a recipe for every service, and what prevents that; those are left out.

    Args:
        anew: whether the hub is asked although the lock says it.
    """
    wanted = {key: host for host in hosts for key in _wanted(host) if _gpu(host) is not None}
    known, refused = _known(wanted, anew=anew)
    found: list[ReadHost] = []
    problems: list[Finding] = []
    for host in hosts:
        try:
            found.append(_with_recipes(host, known, refused))
        except UserError as error:
            problems += error.findings
    return found, problems


def _gpu(host: ReadHost) -> Gpu | None:
    return gpu_of(host.settings, host.catalog, host.given.groups, host.given.origin)


def _of_catalog(host: ReadHost, name: str) -> str | None:
    """The catalog's recipe for a service that names a model; another image is not its own."""
    service = host.settings.services[name]
    if service.model is None or service.revision or service.image:
        return None
    recipe = recipe_for(host.catalog, service.model, _gpu(host))
    return recipe.name if recipe else None


def _key(host: ReadHost, name: str) -> Key:
    """What is asked for; the catalog knows which revision of a model of its own is good."""
    service = host.settings.services[name]
    repository = service.model or ""
    own = [one for one in host.catalog.models.values() if one.repository == repository]
    revision = service.revision or (own[0].revision if own else "main")
    return host.settings.hub_endpoint, repository, revision


def _wanted(host: ReadHost) -> Collection[Key]:
    return {
        _key(host, name)
        for name, service in host.settings.services.items()
        if service.model and _of_catalog(host, name) is None
    }


def _known(
    wanted: Mapping[Key, ReadHost], *, anew: bool
) -> tuple[dict[Key, ResolvedModel], dict[Key, Finding]]:
    """What the models are, and why some of them can't be known."""
    lock_of = cache(lambda path: read_lock(Path(path)))
    token_of = cache(hub_token)
    known: dict[Key, ResolvedModel] = {}
    refused: dict[Key, Finding] = {}
    asked: dict[Key, tuple[str, str | None]] = {}
    registries: dict[Key, list[tuple[str, str | None]]] = {}
    at_commit = cache(snapshot)
    for key, host in wanted.items():
        endpoint, repository, revision = key
        try:
            lock: Lock | None = None if anew else lock_of(host.settings.lock_file)
            token = token_of(host.settings.hub_token_source)
        except UserError as error:
            refused[key] = error.findings[0]
            continue
        locked = lock.models.get(f"{repository}@{revision}") if lock else None
        if locked and locked.facts:
            known[key] = locked.model(repository)
            continue
        registries[key] = [
            (address, (lock.registries or {}).get(address) if lock else None)
            for address in sorted(host.settings.registries.values())
        ]
        # A token in clear text on the network is nobody's secret any more.
        clear = not endpoint.startswith("https://")
        asked[key] = (
            locked.commit if locked else revision,
            None if clear or token is None else token.value,
        )
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs = {
            (endpoint, repository, revision): pool.submit(
                resolve_model, endpoint, repository, at, token, marks=template_marks()
            )
            for (endpoint, repository, revision), (at, token) in asked.items()
        }
        for key, job in jobs.items():
            try:
                found = job.result()
                there = (at_commit(*one) for one in registries[key])
                known[key] = replace(found, recipe=look_up(found.repository, there))
            except UserError as error:
                refused[key] = error.findings[0]
    return known, refused


def _with_recipes(
    host: ReadHost, known: Mapping[Key, ResolvedModel], refused: Mapping[Key, Finding]
) -> ReadHost:
    """One host.

    Raises:
        UserError: everything that prevents it.
    """
    problems: list[Finding] = []
    services = dict(host.settings.services)
    models, recipes = dict(host.catalog.models), dict(host.catalog.recipes)
    derivations: dict[str, Derivation] = {}
    own_known: dict[Key, ResolvedModel] = {}
    gpu = _gpu(host)
    for name, service in host.settings.services.items():
        if service.model is None:
            continue
        if of_catalog := _of_catalog(host, name):
            services[name] = service.model_copy(update={"recipe": of_catalog})
            continue
        where = f"{host.given.origin('services')}: services.{name}"
        image = host.catalog.images.get(service.image or engine(DEFAULT).stock_image)
        key = _key(host, name)
        if image is None:
            unknown = f"no such image: {service.image!r}"
            remedy = suggest(service.image or "", list(host.catalog.images))
            problems.append(mistake(f"{where}.image", unknown, remedy, host.given.name))
        elif gpu is None:
            problems.append(gpu_question(host.given.name, f"{where}.model", service.model))
        elif key in refused:
            problems.append(refused[key])
        else:
            subject = Subject(
                host.given.name, name, service, host.settings, host.catalog, gpu, image,
                known[key], where,
            )  # fmt: skip
            derived = engine(image.engine).derive(subject, advice(subject))
            problems += derived.questions
            services[name] = derived.service
            derivations[name] = derived.derivation
            own_known[key] = known[key]
            if derived.model and derived.recipe:
                models[derived.model.name] = derived.model
                recipes[derived.recipe.name] = derived.recipe
    if problems:
        raise UserError(problems)
    return ReadHost(
        host.given,
        host.settings.model_copy(update={"services": services}),
        host.catalog.model_copy(update={"models": models, "recipes": recipes}),
        derivations,
        own_known,
    )
