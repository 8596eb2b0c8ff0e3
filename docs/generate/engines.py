"""Table of engines in docs/own-models.md, from the engines' interface."""

from collections.abc import Callable

from docs.generate.markdown import table
from sparkwright.catalog import Catalog
from sparkwright.engines import ENGINES, engine
from sparkwright.engines.engine import Engine
from sparkwright.findings.check import load


def part(shipped: Catalog) -> str:
    """Table with a column for each engine."""
    programs = [engine(name) for name in ENGINES]

    def mark(value: object) -> str:
        return "yes" if value else "-"

    def tags(program: Engine) -> str:
        own = [image for image in shipped.images.values() if image.engine == program.name]
        each = {name for image in own for tag in image.tags.values() for name in tag.architectures}
        return ", ".join(sorted(each))

    rows: dict[str, Callable[[Engine], str]] = {
        "`engine`": lambda program: f"`{program.name}`",
        "formats of weights": lambda program: ", ".join(sorted(program.formats)),
        "architectures of its images": tags,
        "versions with checked arguments": lambda program: ", ".join(
            program.parser.tables.versions()
        ),
        "checked variables": lambda program: mark(program.parser.variables),
        "several hosts (ranks)": lambda program: mark(program.parallel),
        "argument for the memory share": lambda program: program.limit_names.get("share", "-"),
        "recipe from a model's own files": lambda program: mark(program.template_marks()),
        "argument for drafting": lambda program: program.limit_names.get("speculative", "-"),
        "kinds of models": lambda program: ", ".join(program.probes.kinds),
        "client routes": lambda program: str(len(program.routes.clients)),
        "metrics": lambda program: str(len(program.metrics) + len(program.graphs)),
        "boot caches": lambda program: mark(program.caches),
        "causes found in its log": lambda program: str(_causes(program)),
        "proven": lambda program: f"unproven: {program.unproven}" if program.unproven else "yes",
    }
    body = [[name, *(row(program) for program in programs)] for name, row in rows.items()]
    return table(["", *(program.title for program in programs)], body)


def _causes(program: Engine) -> int:
    checks = load(program.check_texts.with_name("causes.yaml"))
    return sum(bool(check.pattern) for check in checks.values())
