"""A fleet whose plan is broken: nothing is planned, and nothing is known but what hosts say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sparkwright.catalog import Catalog
from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.config.settings import HostSettings, RolloutSettings
from sparkwright.findings.user_error import UserError
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve.resolution import Resolution
from sparkwright.site.desired import DesiredFleet, DesiredHost
from sparkwright.text.visible import visible

#: What is taken from a broken plan: where sparkwright's own lie on the hosts, and whose lock it is.
_PLACES = ("models_root", "services_root", "break_lock")
_LONGEST = 300


def unplanned_fleet(hosts: Mapping[str, Mapping[str, Any]]) -> DesiredFleet:
    """Hosts of which nothing is planned.

    Args:
        hosts: by name, what could be read of its data.
    """
    return DesiredFleet(
        {
            name: DesiredHost(
                Desired(HostPlan(name, _places(data), ()), Catalog(), Resolution({}, {}), ()),
                violations=(),
                keys=Keys({}, Secret("")),
                token=None,
                proxies=None,
                peer_certificate=None,
            )
            for name, data in hosts.items()
        },
        RolloutSettings(),
    )


def broken(error: BaseException) -> str:
    """One line that says what of the plan is broken."""
    if isinstance(error, UserError):
        first, *more = error.findings
        what = f"{first.subject}: {first.observed}" + (f", and {len(more)} more" if more else "")
    else:
        what = f"{type(error).__name__}: {error}"
    return (
        f"the plan is broken: {visible(what, _LONGEST)} (sparkwright check says all of it); what "
        "follows is what the hosts say"
    )


def _places(data: Mapping[str, Any]) -> HostSettings:
    """Settings that are everybody's, but for the places that are said and can be ones."""
    said: dict[str, Any] = {"services": {}}
    for key in _PLACES:
        if key in data:
            try:
                HostSettings.model_validate({"services": {}, key: data[key]})
            except ValidationError:
                continue
            said[key] = data[key]
    return HostSettings.model_validate(said)
