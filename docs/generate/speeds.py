"""Published speeds of recipes, from the tables of their cards."""

from sparkwright.catalog import Catalog, Recipe
from sparkwright.catalog.measurements import Measurement, Row, Value

_STATUS = ("recommended", "works", "expected")
#: Compute capability of the GB10: every published table was measured on a GB10.
_MEASURED_ON = "12.1"


def in_order(recipe: Recipe) -> tuple[int, str, str]:
    """Sort key: number of the recipe's system, then names."""
    return int(recipe.system.partition(".")[0]), recipe.system, recipe.name


def published(recipe: Recipe, catalog: Catalog) -> tuple[str, str]:
    """A recipe's published speed, and the table of its card; empty without one."""
    recipes = [item for item in catalog.recipes.values() if item.status in _STATUS]
    recipes.sort(key=lambda item: (_STATUS.index(item.status), item.name))
    if _MEASURED_ON not in recipe.needs.compute_caps or recipe.status not in _STATUS:
        return "", ""
    best = _of_system(recipe, recipes, catalog)
    if best is None:
        return "", ""
    measurement, rows = best
    speed = figures(measurement, rows)
    own_tag = recipe.tag or catalog.images[recipe.image].newest_tag
    if measurement.tag not in (None, own_tag):
        speed += f", on tag {measurement.tag}"
    if measurement.body != recipe.body.model:
        speed += f", of {catalog.models[measurement.body].repository.rpartition('/')[2]}"
    return speed, measurement.source.partition(";")[0]


def _of_system(
    recipe: Recipe, recipes: list[Recipe], catalog: Catalog
) -> tuple[Measurement, list[Row]] | None:
    """The recipe's own table; if its body has none, the table of the system's other body."""
    others = [item for item in recipes if item.system == recipe.system]
    return next((best for other in (recipe, *others) if (best := _best(other, catalog))), None)


def _best(recipe: Recipe, catalog: Catalog) -> tuple[Measurement, list[Row]] | None:
    """The newest table of single streams with code among the prompts.

    Tables that the card calls historical, or without code, count only if there is no other table.
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
    """Return whether two tables are of the same run: tag, day, settings and status."""
    keys = ("tag", "date", "conditions", "status")
    return all(getattr(first, key) == getattr(second, key) for key in keys)


def short(row: Row) -> bool:
    return row.concurrency in (1, None) and row.prompt_tokens is None


def speed_of(row: Row) -> Value | None:
    return row.decode or (row.aggregate if row.concurrency == 1 else None)


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
