"""Plan all hosts together: settings, catalogs, plans and rules; report all problems at once.

Services that name a model's repository get their recipes before all other planning.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from sparkwright.catalog import Catalog, Image, Recipe, load_catalog
from sparkwright.catalog.gpus import FAMILIES, GPUS, LEAST_SPARK_GIB, SYSTEM_GIB, VRAM, recipes_for
from sparkwright.checks.configuration import check_host, unknown_silences
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.config import inventory, parse, places, ssh_keys
from sparkwright.config.settings import HostSettings, ServiceSettings, is_loopback
from sparkwright.engines import DEFAULT, ENGINES, engine, serving, stock_image, template_marks
from sparkwright.engines.derivation import Derivation, DerivedFact, Gpu, Subject, form_of
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.user_error import Messages, Problems, UserError, suggest
from sparkwright.host.lib.records import dataclass, field, replace
from sparkwright.plan.plan import HostPlan, plan_host, taken
from sparkwright.resolve import credentials, recipe_registry
from sparkwright.resolve.gguf_files import TOKENS, is_chosen
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.lock import Lock, locked_model, read_lock
from sparkwright.resolve.references import ModelReference
from sparkwright.site.service_files import with_files
from sparkwright.tls import host_certificates

_MESSAGES = Messages(__file__)
#: The key is a model, and whether the service runs GGUF files of the model: a repository may
#: also have other files.
_Wanted = dict[tuple[str, bool], tuple["ReadHost", ModelReference]]
_Answers = Mapping[tuple[str, bool], ResolvedModel | UserError]
_LockOf = Callable[[str], Lock | None]


@dataclass(frozen=True)
class ReadHost:
    """A host's settings and catalog, with a recipe for each of its services.

    Attributes:
        derivations: service -> sources of the values in the service's recipe.
        resolved_models: models from the hub, or from the lock with facts of their files.
    """

    given: inventory.HostInput
    settings: HostSettings
    catalog: Catalog
    derivations: Mapping[str, Derivation] = field(default_factory=dict)
    resolved_models: Mapping[str, ResolvedModel] = field(default_factory=dict)


def with_recipes(
    hosts: Sequence[ReadHost], problems: Problems, lock_of: _LockOf
) -> Iterator[ReadHost]:
    """The hosts with a recipe for every service; services without a recipe are left out.

    Args:
        problems: collection to which the obstacles are added.
        lock_of: function that reads a lock by its path; without a lock, the hub is queried.
    """
    wanted: _Wanted = {}
    for host in hosts:
        for name, service in host.settings.services.items():
            if service.model and _of_catalog(host, name) is None and _gpu(host) is not None:
                reference = _reference(host, name)
                wanted[reference.key, reference.gguf] = host, reference
    models = _known(wanted, lock_of)
    for host in hosts:
        with problems.collected():
            yield _with_recipes(host, models)


def named_gpu(given: inventory.HostInput, settings: HostSettings) -> Gpu | None:
    """Return the GPU from the setting ``gpu``, or from the host's group; `init` writes both from
    the hosts' answers.
    """
    if settings.gpu:
        return Gpu(GPUS[settings.gpu], VRAM.get(settings.gpu), f"{given.origin('gpu')}: gpu")
    for family in FAMILIES.values():
        if family.group in given.groups:
            return Gpu(family.cap, None, f"the host's group, {family.group}")
    return None


def _gpu(host: ReadHost) -> Gpu | None:
    """Return the GPU from the host's settings, or from the recipes of its other services."""
    settings, catalog = host.settings, host.catalog
    if gpu := named_gpu(host.given, settings):
        return gpu
    recipes = [
        catalog.recipes[service.recipe]
        for service in settings.services.values()
        if service.recipe in catalog.recipes
    ]
    caps = [set(recipe.needs.compute_caps) for recipe in recipes]
    common = set.intersection(*caps) if caps else set()
    if len(common) != 1:
        return None
    vram = max((recipe.needs.vram_gib or 0 for recipe in recipes), default=0)
    return Gpu(common.pop(), vram or None, f"recipe {recipes[0].name} of the same host")


def _of_catalog(host: ReadHost, name: str) -> str | None:
    """The catalog's recipe for a service that names a model; a recipe with another image does
    not count.
    """
    service = host.settings.services[name]
    if service.model is None or service.revision or service.image:
        return None
    recipe = recipe_for(
        host.catalog, service.repository, _gpu(host), service.choice, program=service.engine
    )
    return recipe.name if recipe else None


def _reference(host: ReadHost, name: str) -> ModelReference:
    """Reference to a service's model, at the service's revision, the catalog's revision, or
    ``main``.
    """
    service = host.settings.services[name]
    repository = service.repository
    own = [model for model in host.catalog.models.values() if model.repository == repository]
    revision = service.revision or (own[0].revision if own else "main")
    choice = service.choice or _room(host, service)
    gguf = service.engine in ENGINES and "bf16" not in engine(service.engine).formats
    return ModelReference(name, repository, revision, "", facts=True, choice=choice, gguf=gguf)


def _room(host: ReadHost, service: ServiceSettings) -> str:
    """Memory for a service that names a model: an equal part of the card for each of these
    services.
    """
    if (gpu := _gpu(host)) is None:
        return ""
    settings, pool, reserve = host.settings, gpu.vram_gib, 0.0
    if gpu.unified:
        pool = LEAST_SPARK_GIB - SYSTEM_GIB - sum(settings.sidecars.values())
        reserve = engine(serving("gguf")[0]).ram_gib(service.arguments)
    services = sum(service.model is not None for service in settings.services.values())
    return f"{max(0.0, pool / services - reserve):.1f}GiB" if pool else ""


def _known(wanted: _Wanted, lock_of: _LockOf) -> _Answers:
    """Resolved models, or the reason why a model can't be resolved."""
    result: dict[tuple[str, bool], ResolvedModel | UserError] = {}
    jobs: dict[tuple[str, bool], Future[ResolvedModel]] = {}
    at_commit = cache(recipe_registry.snapshot)
    with ThreadPoolExecutor(max_workers=8) as pool:
        for key, (host, model) in wanted.items():
            settings = host.settings
            try:
                lock = lock_of(settings.lock_file)
                if lock and (pin := _pin(lock, model)):
                    result[key] = pin
                    continue
                token = credentials.hub_token(settings.hub_token_source)
            except UserError as error:
                result[key] = error
                continue
            jobs[key] = pool.submit(
                resolve_model,
                settings.hub_endpoint,
                model.repository,
                _revision(lock, model),
                credentials.over_https(token.value if token else None, settings.hub_endpoint),
                marks=template_marks(),
                private=settings.private_servers,
                choice=model.choice,
                gguf=model.gguf,
            )
        for key, job in jobs.items():
            settings = wanted[key][0].settings
            lock = lock_of(settings.lock_file)
            pins = (lock and lock.registries) or {}
            addresses = sorted(settings.registries.values())
            try:
                # The import takes 4 ms, and only services that name a model need it.
                from sparkwright.recipes.advice import look_up

                resolved = job.result()
                there = (at_commit(address, pins.get(address)) for address in addresses)
                result[key] = replace(resolved, recipe=look_up(resolved.repository, there))
            except UserError as error:
                result[key] = error
    return result


def _pin(lock: Lock, model: ModelReference) -> ResolvedModel | None:
    """A model's pin. A file that is not a GGUF file is pinned without its largest size."""
    whole = replace(model, choice="") if model.choice.endswith("GiB") and not model.gguf else model
    return locked_model(lock, model) or locked_model(lock, whole)


def _revision(lock: Lock | None, model: ModelReference) -> str:
    """The commit of a pin without facts, or the revision if there is no pin."""
    pin = lock and (lock.models.get(model.key) or lock.models.get(model.whole))
    return pin.commit if pin else model.revision


def _with_recipes(host: ReadHost, answers: _Answers) -> ReadHost:
    """The host with a recipe for each service that names a model of its own.

    Raises:
        UserError: names every obstacle.
    """
    problems = Problems()
    services = dict(host.settings.services)
    models, recipes = dict(host.catalog.models), dict(host.catalog.recipes)
    derivations: dict[str, Derivation] = {}
    own_known: dict[str, ResolvedModel] = {}
    gpu = _gpu(host)
    for name, service in host.settings.services.items():
        if service.model is None:
            continue
        if of_catalog := _of_catalog(host, name):
            services[name] = service.model_copy(update={"recipe": of_catalog})
            continue
        where = f"{host.given.origin('services')}: services.{name}"
        reference = _reference(host, name)
        program, why = _engine(service, answers.get((reference.key, reference.gguf)))
        image = host.catalog.images.get(service.image or stock_image(program))
        if image is None or service.engine not in (None, image.engine):
            problems.append(_misnamed(host, service, image, where))
        elif gpu is None:
            own, named = f"{where}.model", ", ".join(sorted(GPUS))
            texts = {"model": service.model, "gpus": named}
            problems.append(_MESSAGES.mistake("unknown-gpu", own, host.given.name, **texts))
        elif isinstance(resolved := answers[reference.key, reference.gguf], UserError):
            problems.append(resolved.findings[0])
        else:
            subject = Subject(
                host.given.name, name, service, host.settings, host.catalog, gpu, image,
                resolved, where,
            )  # fmt: skip
            from sparkwright.recipes.advice import advice

            derived = engine(image.engine).derive(subject, advice(subject))
            problems += derived.questions
            services[name] = derived.service
            reference = replace(reference, choice=reference.choice if resolved.part else "")
            listed = (
                DerivedFact("engine", engine(image.engine).title, why),
                *_chosen(resolved, reference.choice),
                *derived.derivation.facts,
            )
            derivations[name] = replace(derived.derivation, facts=listed, choice=reference.choice)
            own_known[reference.key] = resolved
            if derived.model and derived.recipe:
                models[derived.model.name] = derived.model
                recipes[derived.recipe.name] = derived.recipe
    problems.stop()
    return replace(
        host,
        settings=host.settings.model_copy(update={"services": services}),
        catalog=replace(host.catalog, models=models, recipes=recipes),
        derivations=derivations,
        resolved_models=own_known,
    )


def _engine(
    service: ServiceSettings, resolved: ResolvedModel | UserError | None
) -> tuple[str, str]:
    """Name of the engine that serves a model, and the reason."""
    if service.engine or service.image:
        return service.engine or DEFAULT, "the service's setting"
    form = form_of(resolved.facts) if isinstance(resolved, ResolvedModel) else None
    first, *others = serving(form)
    also = " or ".join(f"{engine(name).title} (engine: {name})" for name in others)
    why = f"the first engine that serves {form or 'this format'}"
    return first, why + (also and f"; or {also}")


def _chosen(resolved: ResolvedModel, choice: str) -> Iterator[DerivedFact]:
    """The served GGUF file of a service that names no file."""
    header = resolved.facts and resolved.facts.gguf
    if header and choice.endswith("GiB"):
        why = f"the largest file that fits {choice} with {TOKENS} tokens of context"
        yield DerivedFact("chosen", f"{header.quantization} of {resolved.repository}", why)


def _misnamed(host: ReadHost, service: ServiceSettings, image: Image | None, where: str) -> Finding:
    """Mistake of a service with an unknown engine or image, or with an engine other than the engine
    of the image.
    """
    message, setting, name, names = "no-image", "image", service.image, [*host.catalog.images]
    if service.engine and service.engine not in ENGINES:
        message, setting, name, names = "no-engine", "engine", service.engine, [*ENGINES]
    elif image:
        message, setting, name = "other-engine", "engine", image.engine
    facts = {"image": service.image, "engine": service.engine, "near": suggest(name or "", names)}
    return _MESSAGES.mistake(message, f"{where}.{setting}", host.given.name, name=name, **facts)


#: Statuses, the best first. A failing or superseded recipe is only for services that name the
#: recipe.
_RANKS = ("recommended", "works", "expected")


def recipe_for(
    catalog: Catalog,
    repository: str,
    gpu: Gpu | None,
    choice: str = "",
    *,
    program: str | None = None,
) -> Recipe | None:
    """The best recipe whose body is this repository and that runs on this GPU; None if no recipe
    fits.

    For a named card, the recipe for the most memory that fits the card comes first; then the
    catalog's claim, the least memory, a drafter that makes the model faster, and the name decide.

    Args:
        choice: the required quantization or file of the body, if the repository has several
            choices.
        program: the required engine; None for any engine.
    """

    def order(recipe: Recipe) -> tuple[float, int, float, bool, str]:
        rank = _RANKS.index(recipe.status) if recipe.status in _RANKS else len(_RANKS)
        vram = recipe.needs.vram_gib or 0
        return -vram if gpu and gpu.vram_gib else 0, rank, vram, recipe.drafter is None, recipe.name

    fitting: Iterable[str] = catalog.recipes
    if gpu is not None:
        architecture = FAMILIES[gpu.cap].architecture
        fitting = recipes_for(catalog, architecture, {gpu.cap}, gpu.vram_gib)
    recipes = [
        recipe
        for recipe in map(catalog.recipes.__getitem__, fitting)
        if recipe.status not in ("superseded", "fails")
        and not (recipe.ranks and recipe.ranks.world > 1)
        and (body := catalog.models[recipe.body.model]).repository == repository
        and is_chosen(body.file, choice)
        and program in (None, catalog.images[recipe.image].engine)
    ]
    return min(recipes, key=order, default=None)


@dataclass(frozen=True)
class PlannedHost:
    """A host's plan, and the catalog that the plan was made with.

    Attributes:
        resolved_models: models that were looked up for the plan, by repository and revision.
        login: obstacle to a login.
        data: data of inventory and group_data.
    """

    plan: HostPlan
    catalog: Catalog
    resolved_models: Mapping[str, ResolvedModel] = field(default_factory=dict)
    login: tuple[Finding, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Address at which other hosts reach this host."""
        return inventory.lan_address(self.plan.host, self.data)

    @cached_property
    def violations(self) -> tuple[Finding, ...]:
        """Rules that the plan violates."""
        findings = check_host(self.plan, self.catalog, assumed_hardware(self.plan))
        in_clear = host_certificates.address_in_clear(self.plan.host, self.plan.settings)
        return (*findings, *in_clear, *self.login)


@dataclass(frozen=True)
class Fleet:
    """Planned hosts by name, and the obstacles to planning all other hosts."""

    hosts: dict[str, PlannedHost]
    problems: tuple[Finding, ...]

    def or_raise(self) -> dict[str, PlannedHost]:
        """Return the hosts, or raise all mistakes."""
        Problems(self.problems).stop()
        return self.hosts


def stopping(planned: Mapping[str, PlannedHost]) -> list[Finding]:
    """Violated rules that end a run, since no setting silences them; an obstacle to a host's login
    makes only this host fail.
    """
    result = errors(finding for host in planned.values() for finding in host.violations)
    return [finding for finding in result if finding.id != ssh_keys.SSH_KEY]


def plan_fleet(inputs: Iterable[inventory.HostInput], *, anew: bool = False) -> Fleet:
    """Plan every host; a host's problem does not hide another host's problems.

    Args:
        anew: whether to query the hub for models that services name, although the lock has them.
    """
    read: list[ReadHost] = []
    problems = Problems()
    catalogs: dict[tuple[str, ...], Catalog] = {}
    for host in inputs:
        with problems.collected():
            settings = parse.parse_settings(host.name, host.data, host.origin)
            directories = settings.catalog_directories
            if directories not in catalogs:
                catalogs[directories] = load_catalog(places.catalogs(directories))
            read.append(ReadHost(host, settings, catalogs[directories]))
    hosts: dict[str, PlannedHost] = {}
    # Read each lock once, by its path; read no lock to resolve all references again.
    lock_of = cache(lambda path: None if anew else read_lock(Path(path)))
    for recipe in with_recipes(read, problems, lock_of):
        given = recipe.given
        with problems.collected():
            plan = plan_host(
                given.name, recipe.settings, recipe.catalog, given.origin, recipe.derivations
            )
            file = recipe.settings.lock_file
            plan = with_files(plan, recipe.catalog, given.origin, partial(lock_of, file))
            plan = replace(plan, locked=Path(file).is_file(), gpu=named_gpu(given, recipe.settings))
            problems += taken(plan, given.origin, given.data.get("ssh_port"))
            problems += _of_the_whole(recipe, plan)
            with problems.collected():
                tls = given.origin("tls")
                own = host_certificates.of_user(plan.settings, given.data, plan.host, tls)
                plan = replace(plan, certificate=own)
            login = tuple(ssh_keys.unusable_key(given.name, given.data, given.origin))
            hosts[given.name] = PlannedHost(
                plan, recipe.catalog, recipe.resolved_models, login, given.data
            )
    return Fleet(hosts, tuple(dict.fromkeys(problems)))


def _of_the_whole(host: ReadHost, plan: HostPlan) -> Iterator[Finding]:
    """Services without TLS on a host with TLS, and names of unknown rules."""
    in_clear = [
        service.name
        for service in plan.services
        if host.settings.tls and not service.proxy and not is_loopback(service.bind)
    ]
    yield from host_certificates.clear_services(plan.host, in_clear, host.given.origin("tls"))
    yield from unknown_silences(plan, host.catalog, host.given.origin("services"))
