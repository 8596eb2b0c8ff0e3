"""``sparkwright import``: recipes of other projects into the site's own catalog."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml

from sparkwright.catalog import gpus, load_catalog, reader
from sparkwright.cli.lib.options import dry_option, json_option, option, print_findings
from sparkwright.config.places import catalogs
from sparkwright.documents import text_files as documents
from sparkwright.extras.imports import entries, sources
from sparkwright.extras.imports.formats import FORMATS, import_texts
from sparkwright.findings.finding import Finding, Severity
from sparkwright.findings.render import count, paint, text
from sparkwright.findings.user_error import Problems, mistake, refusal
from sparkwright.recipes.recipe import Options
from sparkwright.text.visible import visible

_HEAD = """\
# Imported by `sparkwright import` from {source}
# The recipe's notes list the parts that were left out; the original: recipes/{name}.original
"""


def write(imported: entries.Imported, directory: Path, *, replace: bool) -> dict[Path, bool]:
    """Write the entries and the original; return each file, and whether the file was written.

    Raises:
        UserError: a file exists with other content and may not be replaced; then nothing is
            written.
    """
    texts = {
        directory / f"{kind}s" / f"{name}.yaml": _text(imported, entry)
        for (kind, name), entry in imported.entries.items()
    }
    texts |= {directory / "recipes" / path: text for path, text in imported.sources.items()}
    changed = {path: not _is_same(path, text) for path, text in texts.items()}
    # A model from another recipe gets this recipe's additions.
    kept = [path for path in texts
            if changed[path] and path.exists() and path.parent.name != "models"]  # fmt: skip
    remedy = "--replace overwrites the file, your changes are lost; --name NAME keeps both files"
    if not replace:
        Problems(mistake(str(path), "the file exists already", remedy) for path in kept).stop()
    for path, content in texts.items():
        if changed[path]:
            documents.write(path, content)
    return changed


def _text(imported: entries.Imported, entry: dict[str, Any]) -> str:
    source = "".join(each if each.isprintable() else "?" for each in imported.source)
    made = reader.validated(entry, imported.source)
    body = made.model_dump(mode="json", exclude_unset=True, exclude_none=False)
    data = yaml.safe_dump(body, sort_keys=False, width=100, allow_unicode=True)
    return _HEAD.format(source=source, name=imported.name) + data


def _is_same(path: Path, text: str) -> bool:
    """Return whether a file has the same content, apart from the day and the commit of the
    import.
    """
    try:
        there = path.read_text(encoding="utf-8")
        if path.suffix != ".yaml":
            return there == text
        return bool(_lasting(yaml.safe_load(there)) == _lasting(yaml.safe_load(text)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False


def _lasting(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _lasting(v) for k, v in data.items() if k not in ("date", "source", "notes")}
    return [_lasting(item) for item in data] if isinstance(data, list) else data


DOCUMENT = list[Finding]


@click.command("import")
@click.argument("source")
@click.argument("recipes", nargs=-1)
@option("import --name")
@option("import --gpu", type=click.Choice(list(gpus.GPUS)))
@option("import --variant")
@option("import --image")
@option("import --engine-version")
@option("import --allow-remote-code")
@option("import --mods")
@option("import --cluster")
@option("import --directory", type=click.Path(path_type=Path, file_okay=False))
@option("import --replace")
@dry_option
@option("import --inventory", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def command(
    source: str, recipes: tuple[str, ...], directory: Path, replace: bool, dry: bool,
    inventory: Path | None, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Write recipes of other projects into the site's catalog.

    The command reads recipes of sparkrun, eugr/spark-vllm-docker and vllm-project/recipes.

    SOURCE is a file, a folder, https://HOST/REPOSITORY, or @NAME of the setting `registries`;
    RECIPES are the names of some of its recipes, and @NAME/RECIPE names a single recipe. The
    original is kept beside the new recipe, whose status is "unproven". Every key that could not be
    carried over is named with the reason. No code of a recipe is run: a mod becomes files and
    patches if each line has a known form.

    Exit with 1 if a recipe could not be imported, or lost a part that it needs: a mod, a plugin, a
    template, an argument that its image does not have.
    """
    trees = tuple(sources.tree_of(name, inventory) for name in (source, options["mods"]) if name)
    if source.startswith("@") and "/" in source:
        recipes = (source.partition("/")[2], *recipes)
    catalog = load_catalog(catalogs([directory] if directory.is_dir() else []))
    options["mods"] = partial(sources.mod_of, trees=trees)
    wanted = Options(**options, allowed=sources.allowed_names(inventory))
    texts = sources.texts_of(trees[0]) if source else []
    results = list(import_texts(sources.chosen(texts, recipes), catalog, wanted))
    if not results:
        raise refusal(source, "the source has no recipe", f"formats: {', '.join(FORMATS)}")
    if options["name"] is not None and len(results) > 1:
        raise click.UsageError(f"--name is for one recipe; the source has {len(results)} recipes")
    lines: list[str] = []
    problems = Problems()
    for imported in results:
        with problems.collected():
            lines += _lines(imported, directory, replace=replace, dry=dry)
    lines += [text(problems, paint=paint)] if problems else []
    lines.append(_summary(results, len(problems)))
    findings = [*(finding for imported in results for finding in imported.findings), *problems]
    print_findings(findings, "\n".join(lines), as_json=as_json)
    sys.exit(int(any(finding.severity is Severity.ERROR for finding in findings)))


def _lines(imported: entries.Imported, directory: Path, *, replace: bool, dry: bool) -> list[str]:
    """Write a recipe, and report the result."""
    if not imported.entries:
        files = []
        head = f"{click.style('not imported', fg='red')}: {visible(imported.source)}"
    else:
        head = f"{click.style(imported.name, bold=True)}: {visible(imported.source)}"
        head += f" ({imported.format})"
        if dry:
            files = [f"  would write {kind} {name}" for kind, name in imported.entries]
        else:
            written = write(imported, directory, replace=replace)
            files = [f"  wrote {path}" for path in written if written[path]]
            files = files or [f"  unchanged {path}" for path in written]
    return list(filter(None, [head, *files, text(imported.findings, indent=2, paint=paint)]))


def _summary(results: list[entries.Imported], failed: int) -> str:
    made = [imported for imported in results if imported.entries]
    whole = sum(imported.whole for imported in made)
    refused = len(results) - len(made) + failed
    summary = f"{count(len(results), 'recipe')}: {whole} imported whole, "
    summary += f"{len(made) - whole - failed} with parts left out, {refused} not imported"
    if made and not failed:
        summary += f". Next: sparkwright check --recipe {made[0].name}"
    return summary
