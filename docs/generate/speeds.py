"""Published speeds of recipes, from the tables of their cards."""

from sparkwright.catalog import Catalog, Recipe
from sparkwright.catalog.measurements import Measurement, Row, Value

_STATUS = ("recommended", "works", "expected")
#: Compute capability of the GB10, on which every published table was measured.
_MEASURED_ON = "12.1"


def in_order(recipe: Recipe) -> tuple[int, str, str]:
    """Sort key: number of the recipe's system, then system and name."""
    return int(recipe.system.partition(".")[0]), recipe.system, recipe.name


def published(recipe: Recipe, catalog: Catalog) -> tuple[str, str]:
    """Published speed of a recipe, and source of its table; both empty if no table is published."""
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
    """Best table of the recipe, or of another recipe of its system if the recipe has no table."""
    others = [item for item in recipes if item.system == recipe.system]
    return next((best for other in (recipe, *others) if (best := _best(other, catalog))), None)


def _best(recipe: Recipe, catalog: Catalog) -> tuple[Measurement, list[Row]] | None:
    """Newest table of single streams with code among the prompts, and its rows.

    Historical tables and tables without code count only if there is no other table.
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
    # A card can split a run into several tables, such as code and prose.
    same = [others for _, other, others in result if other != best and alike(other, best)]
    return best, [*rows, *(row for others in same for row in others)]


def alike(first: Measurement, second: Measurement) -> bool:
    """Return whether two tables are of one run, by tag, day, settings and status."""
    keys = ("tag", "date", "conditions", "status")
    return all(getattr(first, key) == getattr(second, key) for key in keys)


def short(row: Row) -> bool:
    return row.concurrency in (1, None) and row.prompt_tokens is None


def speed_of(row: Row) -> Value | None:
    return row.decode or (row.aggregate if row.concurrency == 1 else None)


def figures(measurement: Measurement, rows: list[Row]) -> str:
    """Format the figure for code, and the range over all kinds of prompts."""
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
