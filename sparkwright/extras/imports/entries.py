"""A foreign recipe as entries of the catalog: recipe, models, and the image if it is new."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from sparkwright.catalog import Catalog, Model, gpus
from sparkwright.engines import DEFAULT
from sparkwright.engines.tables import release
from sparkwright.extras.imports.mods import FILES, read_mods
from sparkwright.extras.imports.names import distinct, family, gguf, repository, slug
from sparkwright.findings.finding import Finding
from sparkwright.recipes import carried_over, serve_arguments, yaml_mapping
from sparkwright.recipes.recipe import CHANGED, LEFT_OUT, Foreign, Options, Unfit

_REFERENCE = re.compile(
    r"(?:(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?)/)?"
    r"(?P<path>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_HUB = "registry-1.docker.io"
#: Repository of vLLM's own images.
_VLLMS = f"{_HUB}/vllm/vllm-openai"
#: Repositories whose tags name the version of the engine.
_KNOWN = (_VLLMS, "ghcr.io/ggml-org/llama.cpp")
#: Tags that are moved to newer builds.
_MOVING = ("latest", "nightly", "main", "dev")


@dataclass(frozen=True)
class Chosen:
    """The image that serves.

    Attributes:
        name, tag: image and tag in the catalog.
        version: version of the engine inside, if known.
        entry: the image's new entry, as in YAML; None if the catalog has the image.
    """

    name: str
    tag: str
    version: str | None
    entry: dict[str, Any] | None


def image_of(foreign: Foreign, catalog: Catalog, options: Options) -> Chosen:
    """Return the catalog's entry of an image, or a new entry.

    Raises:
        Unfit: the text is not a reference, or is the name of a local image.
    """
    reference = options.image or foreign.container
    if reference is None:
        return _stock(foreign, catalog, options)
    parts = _REFERENCE.fullmatch(reference)
    if parts is None:
        raise Unfit("container", repr(reference), "the text is not an image reference")
    host, path, tag, digest = parts.group("host", "path", "tag", "digest")
    if host and "." not in host and ":" not in host and host != "localhost":
        host, path = None, f"{host}/{path}"
    if host in (None, "docker.io", "index.docker.io"):
        host = _HUB
        if "/" not in path:
            reason = "the name is local: no registry has this image"
            remedy = "--image REFERENCE names an image that a registry has"
            raise Unfit("container", repr(reference), reason, remedy)
    tag = tag or (f"sha256-{digest[7:19]}" if digest else "latest")
    repository = f"{host}/{path}"
    for image in catalog.images.values():
        build = image.tags.get(tag)
        if image.repository == repository and build and digest in (None, build.digest):
            version = options.engine_version or build.version
            moves = tag in _MOVING and build.digest is None
            # The entry comes from an import, or has no more facts than an imported entry.
            if image.name == _name(repository, tag) or version is None or moves:
                _note_risks(foreign, repository, tag, build.digest, version)
            return Chosen(image.name, tag, version, None)
    return _new(foreign, catalog, repository, tag, digest, options)


def _stock(foreign: Foreign, catalog: Catalog, options: Options) -> Chosen:
    """The engine's stock image: the catalog's newest tag, or a newer tag that the recipe
    requires.
    """
    image, least = catalog.images[foreign.engine.stock_image], foreign.least_vllm or "0"
    build = image.tags[image.newest_tag]
    if build.version and release(build.version) >= release(least):
        return Chosen(image.name, image.newest_tag, build.version, None)
    tag = f"v{'.'.join(map(str, release(least)))}"
    return _new(foreign, catalog, image.repository, tag, None, options)


def _new(
    foreign: Foreign, catalog: Catalog, repository: str, tag: str, digest: str | None,
    options: Options,
) -> Chosen:  # fmt: skip
    named = re.search(r"(?:^v?|-)(b\d{4,}|\d+\.\d+\.\d+)", tag) if repository in _KNOWN else None
    version = options.engine_version or (named[1] if named else None)
    _note_risks(foreign, repository, tag, digest, version)
    build = {
        "date": foreign.text.date, "version": version,
        "architectures": [gpus.FAMILIES[gpus.GPUS[options.gpu]].architecture],
        "source": f"{foreign.text.source}; architecture: assumed from the recipe's GPU",
        **({"digest": digest} if digest else {}),
    }  # fmt: skip
    name = _name(repository, tag)
    name = distinct(name, name in catalog.images, repository, tag, digest)
    estimate = "an estimate; preflight uses the registry's manifest"
    own = catalog.images[foreign.engine.stock_image]
    program = own.entrypoint if repository == own.repository else foreign.engine.program
    entry = {
        "kind": "image", "name": name, "repository": repository, "entrypoint": program,
        **({"engine": own.engine} if own.engine != DEFAULT else {}),
        "size": {"pull_gib": 10.0, "unpacked_gib": 24.0, "source": estimate},
        "newest_tag": tag, "tags": {tag: build},
    }  # fmt: skip
    return Chosen(name, tag, version, entry)


def _name(repository: str, tag: str) -> str:
    return slug(f"{repository.removeprefix(_HUB + '/')}-{tag}")


def _note_risks(
    foreign: Foreign, repository: str, tag: str, digest: str | None, version: str | None
) -> None:
    """Note the risks of an image: its publisher, a moving tag, an unknown version."""
    shown, note = f"{repository.removeprefix(_HUB + '/')}:{tag}", foreign.remarks.note
    if repository != _VLLMS:
        note("publisher", "container", shown)
    if tag in _MOVING and not digest:
        note("moving-tag", "container", f"{tag} moves")
    if version is None:
        observed = f"{shown}: its version of {foreign.engine.title} is unknown"
        note("unknown-version", "container", observed)


#: Least MemTotal of a Spark, as in recipes for Sparks, and of a box of 32 GB with a dedicated card,
#: where the kernel counts 31.0.
_SPARK_GIB, _BOX_GIB = 110.0, 30.0
_FORMATS = get_args(get_args(Model.model_fields["format"].annotation)[0])
#: Other names of formats.
_CALLED = {"auto-round": "autoround", "none": "bf16"}
#: Findings that stay in the recipe's notes -> their prefixes in the notes.
_KINDS = {LEFT_OUT: "left out", CHANGED: "changed"}


#: (kind, name) -> the new entry, as in YAML.
Entries = dict[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Imported:
    """A recipe of another project, and its entries; a refused recipe has no entries.

    Attributes:
        source: the recipe's file.
        format: format of the recipe's file.
        findings: omitted and changed parts, and requirements.
        name: name of the new recipe.
        sources: path beside the recipe -> text of the original, and of the files that the original
            names.
    """

    source: str
    format: str
    findings: tuple[Finding, ...]
    name: str = ""
    entries: Entries = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Return whether the recipe was imported without omissions."""
        return bool(self.entries) and all(finding.id != LEFT_OUT for finding in self.findings)


def make(foreign: Foreign, title: str, catalog: Catalog, options: Options) -> Imported:
    """Make the entries of a recipe; the title names the recipe's format.

    Raises:
        Unfit: the recipe can't be a recipe of the catalog.
    """
    remarks, text = foreign.remarks, foreign.text
    image = image_of(foreign, catalog, options)
    read = serve_arguments.read_arguments(foreign.arguments, image.version, remarks)
    model, file = read.model or foreign.model, None
    if "gguf" in foreign.engine.formats:
        named, file = gguf(model, read.values.pop("hf_file", None))
        remarks.note("gguf-file", "model", model, file=file)
    else:
        named = repository(model)
    if read.model and read.model != foreign.model:
        remarks.note("another-model", "model", f"{foreign.model}; the command serves {named}")
    config: Any = read.values.get("speculative_config")
    own = isinstance(config, dict) and config.get("model", named) != named
    revision = config.pop("revision", None) if own else None
    mods = list(read_mods(foreign, options))
    files = {file.at.removeprefix(FILES): file for mod in mods for file in mod.files}
    names = foreign.engine.file_arguments(code=options.remote_code)
    placed = {k: files[str(v)].at for k, v in read.values.items() if k in names and str(v) in files}
    options = replace(options, allowed=options.allowed | placed.keys())
    arguments = carried_over.settled(foreign, read.values | placed, named, image.version, options)
    made: Entries = {("image", image.name): image.entry} if image.entry else {}
    models = _Models(foreign, catalog, made)
    body = models.name(named, foreign.revision, "body", _abilities(arguments), file)
    mounted = {"model": body, "mount": f"/models/{body}"}
    drafter, config = None, arguments.get("speculative_config")
    for holder, key in ((config, "model"), (arguments, foreign.engine.drafter)):
        if isinstance(holder, dict) and isinstance(holder.get(key), str):
            drafts = repository(holder[key])
            drafter = models.drafter(drafts, revision, named, body) if drafts != named else None
            holder[key] = (drafter or mounted)["mount"]
    name = _free(foreign, catalog, options)
    spread = carried_over.ranks(foreign, arguments) if options.cluster else {}
    cap, spark = gpus.GPUS[options.gpu], gpus.unified(gpus.GPUS[options.gpu])
    recipe = {
        "kind": "recipe", "name": name, "title": foreign.title, "system": f"Imported: {named}",
        "status": "unproven", "source": text.source, "date": text.date,
        "image": image.name, "tag": image.tag, "body": mounted, "drafter": drafter,
        "served_names": list(read.served_names) or [named],
        "needs": {"compute_caps": [cap], "memory_gib": _SPARK_GIB if spark else _BOX_GIB,
                  **({} if spark else {"vram_gib": float(int(gpus.VRAM[options.gpu]))})},
        "ranks": spread,
        "environment": carried_over.variables(foreign, image.version, options),
        "arguments": {name: serve_arguments.fitting(value) for name, value in arguments.items()},
        "shm_gib": round(foreign.shm_gib or 0, 3), "memlock": foreign.memlock,
        "files": [file.model_dump(exclude_defaults=True) for file in files.values()],
        "patches": [step.model_dump(exclude_defaults=True) for mod in mods for step in mod.patches],
    }  # fmt: skip
    optional = ("drafter", "ranks", "shm_gib", "memlock", "files", "patches")
    recipe = {key: value for key, value in recipe.items() if value or key not in optional}
    # These notes explain the recipe to later readers.
    recipe["notes"] = [
        *foreign.notes,
        *(yaml_mapping.line(f"{_KINDS[finding.id]}: {finding.observed} ({finding.reason})", 300)
          for finding in remarks.findings if finding.id in _KINDS),
    ]  # fmt: skip
    sources = {f"{name}.original": text.text}
    sources |= {path: content for mod in mods for path, content in mod.sources.items()}
    made["recipe", name] = recipe
    return Imported(remarks.source, title, tuple(remarks.findings), name, made, sources)


def _free(foreign: Foreign, catalog: Catalog, options: Options) -> str:
    """Return a name that no other recipe has: the recipe's own name, alone or with the folder's
    name.
    """
    names = [options.name] if options.name else [foreign.name, foreign.longer_name]
    for name in map(slug, names):
        recipe = catalog.recipes.get(name)
        if recipe is None or _place(recipe.source) == _place(foreign.text.source):
            return name
    name = slug(names[0])
    other = catalog.files.get(("recipe", name), "of this import")
    reason = f"the catalog has another recipe of this name: {other}"
    raise Unfit("name", repr(name), reason, "--name NAME")


def _place(source: str | None) -> str:
    """Location of a recipe, without its commit."""
    return re.sub(r"@[0-9a-f]{40}(?=:)", "", source or "")


def _abilities(arguments: dict[str, Any]) -> list[str]:
    """Abilities with which the recipe starts the model."""
    config = arguments.get("speculative_config")
    method = str(config.get("method", "")) if isinstance(config, dict) else ""
    abilities = {
        "tools": bool(arguments.get("tool_call_parser")),
        "thinking": bool(arguments.get("reasoning_parser")),
        "mtp": method.endswith("mtp"),
    }
    return [name for name, has in abilities.items() if has]


@dataclass(frozen=True)
class _Models:
    """The catalog's models, and the recipe's own models."""

    foreign: Foreign
    catalog: Catalog
    made: Entries

    def name(
        self, named: str, revision: str | None, role: str, abilities: list[str],
        file: str | None = None,
    ) -> str:  # fmt: skip
        """Return the name of the catalog's entry for a repository, or of a new entry."""
        for model in self.catalog.models.values():
            same = model.repository.lower() == named.lower() and model.role == role
            if same and revision in (None, model.revision) and file == model.file:
                self._extend(model, abilities)
                return model.name
        name = slug("-".join(filter(None, (named, revision, file and file.removesuffix(".gguf")))))
        name = distinct(name, name in self.catalog.models, named, revision, role)
        foreign, body = self.foreign, role == "body"
        weights = _CALLED.get(str(foreign.format), foreign.format)
        self.made["model", name] = {
            "kind": "model", "name": name, "repository": named,
            "family": family(named if body else foreign.model),
            **({"revision": revision} if revision else {}),
            "role": role, "status": "unproven",
            "format": "gguf" if file else weights if body and weights in _FORMATS else None,
            **({"file": file} if file else {}),
            **({"context": foreign.context} if foreign.context and body else {}),
            **({"capabilities": abilities} if abilities else {}),
            "source": foreign.text.source, "date": foreign.text.date,
        }  # fmt: skip
        return name

    def _extend(self, model: Model, abilities: list[str]) -> None:
        """Add the abilities with which another recipe starts the model to the entry of an earlier
        import.
        """
        more = [ability for ability in abilities if ability not in model.capabilities]
        if more and model.status == "unproven":
            data = model.model_dump(mode="python", exclude_defaults=True)
            data |= {"format": model.format, "capabilities": [*model.capabilities, *more]}
            self.made["model", model.name] = data

    def drafter(self, drafts: str, revision: str | None, named: str, body: str) -> dict[str, str]:
        """The drafter model, with its mount."""
        name = self.name(drafts, revision, "drafter", [])
        if ("model", name) in self.made:
            model = self.catalog.models.get(body)
            self.made["model", name]["family"] = model.family if model else family(named)
        return {"model": name, "mount": f"/models/{name}"}
