"""Any mutation of valid settings: a located message or a plan, never a traceback."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.config.inventory import HostInput
from sparkwright.plan.service import container_command, render_service
from sparkwright.site.fleet import plan_fleet
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import alone, origin, plan, resolution

cases = Tables(__file__)

VALID: dict[str, Any] = cases.data["VALID"]
_text = st.text(max_size=12)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    result = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            result += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            result += _paths(inner, (*path, number))
    return result


def _mutated(path: tuple[Any, ...], value: Any, key: str | None) -> dict[str, Any]:
    """The valid settings with one value replaced, or its key renamed."""
    data = copy.deepcopy(VALID)
    holder: Any = data
    for part in path[:-1]:
        holder = holder[part]
    if key is not None and isinstance(holder, dict):
        holder[key] = holder.pop(path[-1])
    else:
        holder[path[-1]] = value
    return data


@given(st.sampled_from(_paths(VALID)), _values, st.none() | _text)
def test_any_mutation_is_a_plan_or_a_located_problem(
    path: tuple[Any, ...], value: Any, key: str | None
) -> None:
    fleet = plan_fleet([HostInput("spark-1", _mutated(path, value, key), origin)])
    for problem in fleet.problems:
        assert problem.subject.place
        assert problem.observed
        assert problem.remedy
    assert fleet.problems or "spark-1" in fleet.hosts
    for host in fleet.hosts.values():
        for violation in host.violations:
            assert (violation.subject.key or "").startswith("services.")
            assert violation.remedy


_texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(
    st.sampled_from(sorted(alone())),
    st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,10}", fullmatch=True), _texts, max_size=3),
    # One that begins with a dash is refused: tests/unit/security/test_ways_around.py.
    st.lists(
        _texts.filter(lambda word: not word.startswith("-") and word == word.lstrip()),
        min_size=1, max_size=3, unique=True,
    ),
)  # fmt: skip
def test_what_is_rendered_reads_back_as_it_was_meant(
    recipe: str, environment: dict[str, str], names: list[str]
) -> None:
    host = plan({"s": {"recipe": recipe, "environment": environment, "served_names": names}})
    (service,) = host.services
    release = render_service(host, service, resolution(host))
    read = safe_load(release.compose)["services"]["engine"]
    read_environment = read.get("environment", {})
    shown = {key: str(value).replace("$$", "$") for key, value in read_environment.items()}
    for key, value in environment.items():
        assert shown[key] == value
    if service.variables is None:
        command = [word.replace("$$", "$") for word in read["command"]]
        assert command == container_command(service).arguments
        assert any(names[0] in word for word in command)
