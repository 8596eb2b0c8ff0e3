"""The README's table: model, GPU, published speed, and whether this tool ever ran it for real."""

from collections.abc import Iterable, Iterator

from docs.generate.markdown import table
from sparkwright.catalog import Catalog, Recipe
from sparkwright.catalog.gpus import FAMILIES, architectures, spark_only
from sparkwright.catalog.measurements import Measurement, Row, Value

BEGIN, END = "<!-- speeds: generated -->\n", "<!-- /speeds -->"
_STATUS = ("recommended", "works", "expected")
#: Every published table was measured on it.
_MEASURED_ON = "12.1"


def in_order(recipe: Recipe) -> tuple[int, str, str]:
    """Systems by their numbers."""
    return int(recipe.system.partition(".")[0]), recipe.system, recipe.name


def inserted(readme: str, catalog: Catalog) -> str:
    """The README with its table made anew."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    head = ("model", "GPU", "published tokens/s", "published in", "run on real hardware?")
    return f"{before}{BEGIN}{table(head, _rows(catalog))}\n{END}{after}"


def _rows(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """Rows by system and GPU; each stands for the recipe that the card recommends."""
    shown: set[tuple[str, str]] = set()
    recipes = [recipe for recipe in catalog.recipes.values() if recipe.status in _STATUS]
    recipes.sort(key=lambda item: (in_order(item)[0], _STATUS.index(item.status), item.name))
    for recipe in recipes:
        for capability in recipe.needs.compute_caps:
            if FAMILIES[capability].architecture not in architectures(recipe, catalog):
                continue  # the card says so, and no such machine runs its image
            if (recipe.system, capability) in shown:
                continue
            shown.add((recipe.system, capability))
            speed, source = "none", "-"
            if capability == _MEASURED_ON and (best := _of_system(recipe, recipes, catalog)):
                speed, source = figures(*best), best[0].source.partition(";")[0]
                own_tag = recipe.tag or catalog.images[recipe.image].newest_tag
                if best[0].tag not in (None, own_tag):
                    speed += f", on tag {best[0].tag}"
                if best[0].body != recipe.body.model:
                    speed += f", of {catalog.models[best[0].body].repository.rpartition('/')[2]}"
            only = " only" if spark_only(recipe, catalog) else ""
            gpu = f"{FAMILIES[capability].title}{only}"
            yield recipe.title.partition(",")[0], gpu, speed, source, hardware([recipe])


def _of_system(
    recipe: Recipe, recipes: list[Recipe], catalog: Catalog
) -> tuple[Measurement, list[Row]] | None:
    """The recipe's own table; where its body has none, that of the system's other body."""
    others = [item for item in recipes if item.system == recipe.system]
    return next((best for other in (recipe, *others) if (best := _best(other, catalog))), None)


def _best(recipe: Recipe, catalog: Catalog) -> tuple[Measurement, list[Row]] | None:
    """The newest table of single streams with code among the prompts.

    What the card calls historical, or has no code, is taken only without another.
    """
    result = []
    for measurement in catalog.measurements.values():
        drafter = recipe.drafter.model if recipe.drafter else None
        if (measurement.image, measurement.body, measurement.drafter) == (
            recipe.image,
            recipe.body.model,
            drafter,
        ):
            rows = [row for row in measurement.rows if short(row) and speed_of(row) is not None]
            if rows:
                code = any(row.category == "coding" for row in rows)
                rank = (
                    measurement.status == "measured",
                    code,
                    measurement.date,
                    len(rows),
                    measurement.name,
                )
                result.append((rank, measurement, rows))
    if not result:
        return None
    _, best, rows = max(result)
    # Tables of the same run: one of code, one of prose.
    same = [others for _, other, others in result if other != best and alike(other, best)]
    return best, [*rows, *(row for others in same for row in others)]


def alike(first: Measurement, second: Measurement) -> bool:
    """Whether two tables are of the same run: tag, day, settings and status."""
    keys = ("tag", "date", "conditions", "status")
    return all(getattr(first, key) == getattr(second, key) for key in keys)


def short(row: Row) -> bool:
    return row.concurrency in (1, None) and row.prompt_tokens is None


def speed_of(row: Row) -> Value | None:
    return row.decode or (row.aggregate if row.concurrency == 1 else None)


def hardware(recipes: Iterable[Recipe]) -> str:
    """On what, and when, recipes ran for real with this tool."""
    runs = [f"{ran.gpu}, {ran.date}: {ran.outcome}" for recipe in recipes for ran in recipe.ran]
    return "; ".join(runs) or "not yet"


def figures(measurement: Measurement, rows: list[Row]) -> str:
    """The figure for code, and the range over all kinds of prompts."""
    every = [end for row in rows for end in _ends(speed_of(row))]
    code = [end for row in rows if row.category == "coding" for end in _ends(speed_of(row))]
    text = f"{max(code or every):.0f}"
    if f"{min(every):.0f}" != f"{max(every):.0f}":
        text += f" ({min(every):.0f} to {max(every):.0f})"
    text += "" if code else " (no code among the prompts)"
    return text if measurement.status == "measured" else f"{text}, {measurement.status}"


def _ends(value: Value | None) -> tuple[float, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)
