"""Rules on a whole service: model, image, secrets, mounts, names, ports, and foreign code."""

import math
from collections.abc import Iterator
from fnmatch import fnmatchcase

from sparkwright.catalog.gpus import FAMILIES, family, recipes_for
from sparkwright.checks.configuration.facts import Context
from sparkwright.config.settings import THINKING_TOKENS, is_loopback
from sparkwright.engines import allowlist, arguments
from sparkwright.findings.check import Symptom, check
from sparkwright.plan.patches import files_of
from sparkwright.resolve import hub, pickles
from sparkwright.text.sizes import GIB

#: Variables that hold secrets -> settings of the secrets. The engine's own variable comes first.
_SECRETS = {
    "HF_TOKEN": "hub_token_file, or HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN": "hub_token_file, or HF_TOKEN",
}


@check("model-works")
def _works(context: Context) -> Iterator[Symptom]:
    for model in filter(None, (context.body, context.drafter)):
        if model.status in ("fails", "expected"):
            case = model.status
            yield Symptom(
                "model-works", case, model=model, reason=model.reason, source=model.source
            )
    if context.recipe.status == "unproven":
        yield Symptom("model-works", "unproven", model=context.recipe, source=context.recipe.source)


@check("thinking-budget")
def _thinking(context: Context) -> Iterator[Symptom]:
    smoke = context.service.settings.smoke
    thinks = smoke.thinking and "thinking" in context.body.capabilities
    if thinks and smoke.max_tokens < THINKING_TOKENS:
        yield Symptom(tokens=smoke.max_tokens, least=THINKING_TOKENS)


@check("patched-base")
def _patched(context: Context) -> Iterator[Symptom]:
    if context.recipe.patches and not (context.plan.locked or context.service.image.digest):
        yield Symptom(image=context.service.image)


@check("image-architecture")
def _architecture(context: Context) -> Iterator[Symptom]:
    own, cap = context.hardware.architecture, context.hardware.compute_cap
    image = context.service.image
    published = context.image.tags[image.tag].architectures
    if own is None or own in published:
        return
    others = recipes_for(context.catalog, own, {cap}, context.service.recipe.needs.vram_gib)
    yield Symptom(
        "image-architecture",
        "others" if others else "",
        image=image,
        published=" and ".join(published),
        machines=family(cap),
        needed=own,
        others=" or ".join(others),
    )


@check("recipe-gpu")
def _gpu(context: Context) -> Iterator[Symptom]:
    gpu, needs = context.plan.gpu, context.recipe.needs
    right = gpu is None or gpu.cap in needs.compute_caps
    if gpu and not (right and (needs.vram_gib or 0) <= (gpu.vram_gib or math.inf)):
        machine = FAMILIES[gpu.cap]
        others = recipes_for(context.catalog, machine.architecture, {gpu.cap}, gpu.vram_gib)
        yield Symptom(
            "recipe-gpu", "memory" if right else "", gpu=gpu, machine=machine, needs=needs,
            made=" or ".join(map(family, needs.compute_caps)), others=" or ".join(others),
        )  # fmt: skip


@check("secret-in-environment")
def _secrets(context: Context) -> Iterator[Symptom]:
    own = context.engine.key_variable
    for name, setting in {own: "api_key_file, or SPARKWRIGHT_API_KEY", **_SECRETS}.items():
        if name in context.environment:
            yield Symptom(name=name, setting=setting)


@check("adapters")
def _adapters(context: Context) -> Iterator[Symptom]:
    service, resolved = context.service, context.plan.resolved
    most = context.number("max_lora_rank") or 0
    size = service.body.key in resolved and resolved[service.body.key].hidden_size
    for name, adapter in service.adapters.items():
        model = resolved.get(adapter.key)  # rechecked with the lock's files
        lora = (model and model.lora) or hub.Lora()
        base = (lora.base or "").rpartition("/")[2].lower()
        cases = {
            "engine": "lora_modules" not in context.arguments,
            "off": context.arguments.get("enable_lora") is False,
            "no-configuration": model and not model.lora, "kind": lora.kind != "LORA",
            "pickle": not lora.rank, "rank": lora.rank > most,
            "size": size and lora.hidden_size and size != lora.hidden_size,
            "base": base not in service.body.repository.lower(),
        }  # fmt: skip
        judged = cases if model else ("engine", "off")
        for case in [case for case in judged if cases[case]][:1]:
            yield Symptom("adapters", case, name=name, adapter=adapter, lora=lora, most=most,
                          body=service.body, size=size, engine=context.engine)  # fmt: skip


@check("kv-offload")
def _offload(context: Context) -> Iterator[Symptom]:
    if offload := context.service.kv_offload:
        added = context.engine.additions(context.version, {}, 0, offload)
        token = context.engine.kv_bytes(context.body, context.effective, 1)
        written = (
            f"{token * 1e6 / GIB:.1f} GiB" if token else "the size that sparkwright lock finds"
        )
        case = "disk" if offload.disk else ""
        if any(context.arguments.get(name) != value for name, value in added.items()):
            case = "twice"
        elif not added or (offload.disk and context.service.rank):
            case = "unable"
        yield Symptom("kv-offload", case, offload=offload, written=written, context=context)


@check("mounts")
def _mounts(context: Context) -> Iterator[Symptom]:
    service = context.service
    mounts = [model.mount for model in service.models]
    if len(set(mounts)) < len(mounts):
        yield Symptom(mount=mounts[0])
    for key, value in service.arguments:
        if key in ("model", "tokenizer") and value not in mounts:
            yield Symptom("mounts", "argument", name=key, value=value, mount=service.body.mount)


@check("absent-file")
def _absent_file(context: Context) -> Iterator[Symptom]:
    service, steps = context.service, context.service.image.steps
    there = {file.at for file in (*context.recipe.files, *service.settings.files)}
    there |= set(files_of(steps)) if steps else set()
    patterns = (*context.engine.in_image, *context.image.known_files)
    mounts = {f"{model.mount}/": model for model in service.models}
    for name in sorted(context.engine.file_arguments(code=True) & context.written.keys()):
        path = str(context.written[name])
        # A value that is not a path is the name or the text of a template.
        is_path = "/" in path or path.endswith((".jinja", ".jinja2", ".j2", ".py", ".json"))
        if not is_path or {*"{}\n"} & {*path} or path in there:
            continue
        if mount := next((mount for mount in mounts if path.startswith(mount)), None):
            # The rule checks the path once more with the lock's files.
            reference, plan = mounts[mount], context.plan
            model, allowed = plan.resolved.get(reference.key), plan.settings.allowed_pickles
            files = pickles.fetched(model, (*allowed, *reference.code)).files if model else {}
            if model and path.removeprefix(mount) not in files:
                yield Symptom("absent-file", "model", name=name, path=path, model=reference)
        elif not any(fnmatchcase(path, pattern) for pattern in patterns):
            yield Symptom(name=name, path=path, file=path.rpartition("/")[2])


@check("one-served-name")
def _one_name(context: Context) -> Iterator[Symptom]:
    names = [n for n in context.service.served_names if n not in context.service.adapters]
    if len(names) > 1 and (context.image.variables is not None or context.engine.one_name):
        case = "engine" if context.engine.one_name else ""
        yield Symptom("one-served-name", case, count=len(names), first=names[0])


@check("served-name-mark")
def _mark(context: Context) -> Iterator[Symptom]:
    for name in context.service.served_names:
        if (mark := context.engine.name_mark) and mark in name:
            yield Symptom(name=name, mark=mark, near=name.replace(mark, "-"))


@check("media-without-list")
def _media(context: Context) -> Iterator[Symptom]:
    settings = context.service.settings
    if context.engine.media_list(context.version):
        return
    if settings.media_domains:
        yield Symptom(setting="media_domains")
    elif settings.outgoing and {"image", "video"} & {*context.body.capabilities}:
        yield Symptom(setting="outgoing")


@check("old-tag")
def _tag_of_recipe(context: Context) -> Iterator[Symptom]:
    tag, tags = context.service.image.tag, context.image.tags
    newest = context.image.newest_tag
    if context.recipe.tag or tag == newest or tag not in tags:
        return
    day, last = tags[tag].date, tags[newest].date
    # The newest tag's rollback tag, and the rollback tag before it, are not reported.
    back = tags[newest].rollback
    named = (back, tags[back].rollback if back in tags else None)
    if tag not in named and day and last and day < last:
        yield Symptom(tag=tag, date=day, newest=newest)


@check("open-routes")
def _open_routes(context: Context) -> Iterator[Symptom]:
    service = context.service
    if not service.proxy and not is_loopback(service.bind):
        routes = ", ".join(context.engine.routes.open)
        yield Symptom(planned=service, routes=routes)


@check("remote-code")
def _remote_code(context: Context) -> Iterator[Symptom]:
    plan = context.plan
    if not context.limits.remote_code:
        return
    if not plan.locked:
        yield Symptom()
        return
    if plan.python_files is None:
        return  # rechecked with the lock's files
    models = [model for model in (context.body, context.drafter) if model]
    files = {model.name: plan.python_files.get(model.name, ()) for model in models}
    if not any(files.values()):
        yield Symptom("remote-code", "needless")
    for model in models:
        if unread := [path for path in files[model.name] if path not in model.code]:
            yield Symptom("remote-code", "unread", model=model, paths=", ".join(unread))


@check("imported-setting")
def _imported_setting(context: Context) -> Iterator[Symptom]:
    recipe, left_out = context.recipe, list[allowlist.LeftOut]()
    if not recipe.system.startswith("Imported: "):
        return
    # An import keeps trust_remote_code if the user requests it; the rule `remote-code` checks it.
    allowed = {*context.plan.settings.allowed_in_recipes, "trust_remote_code"}
    kept = context.engine.allowlist.kept
    files = [file.at for file in recipe.files]
    names = context.engine.file_arguments(code=True)
    allowed |= {name for name in names if recipe.arguments.get(name) in files}
    for name, value in recipe.arguments.items():
        kept("arguments", name, arguments.mapping(value) or value, allowed, left_out)
    for name, text in recipe.environment.items():
        kept("env", name, text, allowed, left_out)
    for name, _, reason in left_out:
        yield Symptom(name=name, reason=reason)


@check("left-out")
def _left_out(context: Context) -> Iterator[Symptom]:
    files, start = context.plan.python_files or {}, "left out: "
    notes = context.recipe.notes if context.recipe.system.startswith("Imported: ") else ()
    parts = [note.removeprefix(start) for note in notes if note.startswith(start)]
    parts += [fact.value for fact in context.service.derived if fact.name == "not taken"]
    for model in filter(None, (context.body, context.drafter)):
        parts += [path for path in files.get(model.name, ()) if path not in model.code]
    if parts:
        yield Symptom(parts="; ".join(parts))
