"""Licences and operators' duties of the planned services, each once for the whole fleet."""

from collections.abc import Iterable
from dataclasses import dataclass

from sparkwright.catalog import Catalog, Image, Model
from sparkwright.plan.plan import ServicePlan


@dataclass(frozen=True)
class Term:
    """Terms under which an image or a model is published.

    Attributes:
        of: the image's name, or the model's repository.
        license: name and note of the license, or a note that no license is named.
    """

    of: str
    license: str
    source: str


@dataclass(frozen=True)
class Terms:
    """Licenses and duties that an operator must know before others use a service.

    Attributes:
        licenses: licenses of every image and model.
        duties: duties of operators from the models' cards -> source.
    """

    licenses: tuple[Term, ...]
    duties: dict[str, str]


def terms(services: Iterable[tuple[ServicePlan, Catalog]]) -> Terms:
    """The terms of these services, each once."""
    licenses: dict[str, Term] = {}
    duties: dict[str, str] = {}
    for service, catalog in services:
        image = catalog.images[service.image.image]
        entries: list[tuple[str, Image | Model | None]] = [(image.name, image)]
        entries += [(model.repository, catalog.models.get(model.name)) for model in service.models]
        for name, entry in entries:
            licenses.setdefault(name, _term(name, entry))
            if entry and entry.duties:
                duties |= dict.fromkeys(entry.duties.duties, entry.duties.source)
    return Terms(tuple(licenses.values()), duties)


def _term(name: str, entry: Image | Model | None) -> Term:
    own = entry.license if entry else None
    if own is None:
        return Term(name, "the catalog names no licence", "-")
    arguments = [word for word in (own.name, own.note) if word]
    return Term(name, ", ".join(arguments) or "no licence is named", own.source)
