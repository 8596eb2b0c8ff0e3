"""Settings by the names that they had before: valid, with a warning where the user wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from sparkwright.config.parse import parse_settings
from sparkwright.config.renamed import (
    RENAMED,
    RENAMED_IN_SERVICES,
    renamed_settings,
    with_new_names,
)
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.findings.user_error import UserError
from tests.unit.builders import SPARK, origin


def _settings(**data: Any) -> HostSettings:
    return parse_settings("spark-1", {"services": SPARK, **data}, origin)


def test_every_new_name_is_a_setting_and_no_old_one_is() -> None:
    assert set(RENAMED.values()) <= set(HostSettings.model_fields)
    assert set(RENAMED_IN_SERVICES.values()) <= set(ServiceSettings.model_fields)
    assert not set(RENAMED) & set(HostSettings.model_fields)
    assert not set(RENAMED_IN_SERVICES) & set(ServiceSettings.model_fields)


def test_old_names_mean_the_same() -> None:
    assert _settings(seeding=False).peer_sharing is False
    assert _settings(fetch_limit_mb=7).download_limit_mb == 7
    services = {"qwen36": {**SPARK["qwen36"], "door": True}}
    assert parse_settings("spark-1", {"services": services}, origin).services["qwen36"].proxy


def test_each_old_name_is_a_warning_in_its_file() -> None:
    data = {"seeding": True, "services": {"qwen36": {"door": True}}}
    seeding, door = renamed_settings("spark-1", data, origin)
    assert seeding.subject.key == "seeding"
    assert seeding.remedy == "write peer_sharing"
    assert door.subject.key == "services.qwen36.door"
    assert door.remedy == "write proxy"
    assert list(renamed_settings("spark-1", with_new_names(data), origin)) == []


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_where_both_are_set_the_new_one_counts(order: tuple[str, str]) -> None:
    of = {"old": ("door", False), "new": ("proxy", True)}
    found = with_new_names({"services": {"q": dict(of[one] for one in order)}})
    assert found["services"]["q"] == {"proxy": True}
    found = with_new_names({"peer_sharing": True, "seeding": False})
    assert found == {"peer_sharing": True}


def test_a_mistake_is_named_as_the_user_wrote_it() -> None:
    with pytest.raises(UserError) as raised:
        parse_settings(
            "spark-1",
            {"services": SPARK, "fetch_limit_mb": "x"},
            {"fetch_limit_mb": "group_data/all.py"}.__getitem__,
        )
    (problem,) = raised.value.findings
    assert problem.subject.place == "group_data/all.py: fetch_limit_mb"
