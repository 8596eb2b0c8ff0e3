"""Makes docs/catalog.md from the catalog: ``python -m sparkwright.docs > docs/catalog.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.catalog.gpu import family
from sparkwright.config.places import CATALOG, DATA
from sparkwright.doctor import CHECKS
from sparkwright.rules import RULES
from sparkwright.vllm.arguments import RULE_IDS

_SOURCES = """\
Sources are the cards as they were read:

- card of vllm-ultimate-dgx-spark (seed 000 below): of the image aeon-vllm-ultimate, 2026-07-02
- card of Qwen3.6-35B-A3B-heretic-NVFP4 (seed 001), 2026-06-19
- card of vllm-dflash (seed 002): of the image, for Qwen3.5-27B
- card of Gemma-4-26B-A4B-it-Uncensored-NVFP4 (seed 003), 2026-06-11
- card of vllm-spark-omni-q36 (seed 004): of the image, 2026-05-01
- NVIDIA's playbooks and reports of users: public ones, gathered
- vLLM itself, as observed: what real servers took, printed and answered

Where two contradict each other for the same tag, the newer dated statement holds, and a comment in
the catalog's file names both."""

_KNOWN_ISSUES = DATA / "docs/known-issues.yaml"


def page(catalog: Catalog) -> str:
    """The whole page."""
    parts = [
        "# The catalog",
        "Made by `python -m sparkwright.docs > docs/catalog.md`: change the catalog, not this.",
        _SOURCES,
        "## Systems",
        _table(
            ("system", "recipe", "GPU", "status", "image and tag", "says who"),
            (
                (
                    recipe.system,
                    f"`{recipe.name}`",
                    ", ".join(family(cap) for cap in recipe.needs.compute_caps),
                    recipe.status,
                    f"{recipe.image}:{recipe.tag or catalog.images[recipe.image].newest_tag}",
                    recipe.source,
                )
                for recipe in sorted(catalog.recipes.values(), key=lambda r: (r.system, r.name))
            ),
        ),
        "## Aliases",
        "Names of one model, and what clients should send with them "
        "(`sparkwright endpoints` writes it into their configuration).",
        _table(
            ("alias", "for", "T", "top P", "top K", "presence", "thinking", "says who", "recipes"),
            _aliases(catalog),
        ),
        "## Tags",
        _table(
            ("image", "tag", "date", "vLLM", "roll back to", "breaks"),
            (
                (
                    image.name,
                    f"`{tag}`",
                    str(data.date),
                    data.vllm or "not told",
                    data.rollback or "-",
                    "; ".join(data.breaks) or "-",
                )
                for image in catalog.images.values()
                for tag, data in image.tags.items()
            ),
        ),
        "## Models",
        _table(
            ("model", "repository", "format", "GB", "status"),
            (
                (
                    f"`{model.name}`",
                    model.repository,
                    model.format or "not told",
                    f"{model.size_gib:g}" if model.size_gib else "not told",
                    f"{model.status}{': ' + model.reason if model.reason else ''}",
                )
                for model in sorted(catalog.models.values(), key=lambda m: m.name)
            ),
        ),
        "## Rules",
        "Each can be silenced on one service, with a reason that every run repeats: "
        '`"silenced": {"<rule>": "why it does not hold here"}`.',
        _table(("rule", "severity", "finds", "why", "says who"), _rules(catalog)),
        "## Slow services",
        "What `sparkwright report` names when a service lies below its card's figures.",
        _table(("cause", "seen as", "what", "how to find out", "says who"), _causes(catalog)),
        "## Known issues of the cards",
        _table(("issue", "found by", "how", "diagnosed as", "says who"), _issues()),
        "## Diagnoses",
        "What `sparkwright doctor` finds; the watch and the alert rules use the same names.",
        _table(
            ("diagnosis", "severity", "likely cause", "remedy", "says who"),
            (
                (f"`{check.id}`", str(check.severity), check.reason, check.remedy, check.source)
                for check in CHECKS
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _rules(catalog: Catalog) -> Iterable[Sequence[str]]:
    for rule in RULES:
        yield f"`{rule.id}`", str(rule.severity), rule.title, rule.reason, rule.source
        if rule.id == "vllm-arguments":
            for name in RULE_IDS:
                yield f"`{name}`", "error", name.replace("-", " "), rule.reason, rule.source
    for image in catalog.images.values():
        for issue in image.issues:
            where = f"{issue.what} ({image.name}: {', '.join(issue.tags) or 'every tag'})"
            yield f"`{issue.id}`", issue.severity, where, issue.why, issue.source


def _causes(catalog: Catalog) -> Iterable[Sequence[str]]:
    for group in catalog.causes.values():
        for cause in group.causes:
            scope = [", ".join(cause.when)]
            scope += [f"{cause.concurrency} requests and more"] if cause.concurrency > 1 else []
            scope += [f"{cause.prompt_tokens} tokens and more"] if cause.prompt_tokens else []
            scope += [f"tag {' or '.join(cause.tags)}"] if cause.tags else []
            scope += [f"not with {key} {value}" for key, value in cause.ruled_out_by.items()]
            yield f"`{cause.id}`", "; ".join(scope), cause.what, cause.look, cause.source


def _issues() -> Iterable[Sequence[str]]:
    entries: list[dict[str, Any]] = yaml.safe_load(_KNOWN_ISSUES.read_text(encoding="utf-8"))
    for entry in entries:
        diagnosed = ", ".join(entry.get("doctor", ())) or "-"
        yield entry["issue"], entry["by"], entry["how"], diagnosed, entry["source"]


def _aliases(catalog: Catalog) -> Iterable[Sequence[str]]:
    """A line per alias; recipes of the same model share it."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for recipe in sorted(catalog.recipes.values(), key=lambda r: (r.system, r.name)):
        for name, alias in recipe.aliases.items():
            line = (
                f"`{name}`",
                alias.title,
                _figure(alias.temperature),
                _figure(alias.top_p),
                _figure(alias.top_k),
                _figure(alias.presence_penalty),
                {None: "-", True: "on", False: "off"}[alias.thinking],
                alias.source,
            )
            lines.setdefault(line, []).append(f"`{recipe.name}`")
    for shared, recipes in lines.items():
        yield *shared, ", ".join(recipes)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in lines)


if __name__ == "__main__":
    sys.stdout.write(page(load_catalog([CATALOG])))
