"""A fleet whose plan is broken: nothing is planned, and nothing is known but what hosts say."""

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

#: What is taken from a broken plan, as far as it can be read: where sparkwright's own lie on the
#: hosts, whether a lock is broken, and how hosts are switched.
_READ = ("models_root", "services_root", "break_lock", "rollout")
_LONGEST = 300


def unplanned_fleet(hosts: Mapping[str, Mapping[str, Any]]) -> DesiredFleet:
    """Hosts of which nothing is planned.

    Args:
        hosts: by name, what could be read of its data.
    """
    settings = {name: _settings(data) for name, data in hosts.items()}
    rollouts = [setting.rollout for setting in settings.values()]
    return DesiredFleet(
        {
            name: DesiredHost(
                Desired(HostPlan(name, own, ()), Catalog(), Resolution(images={}, models={}), ()),
                violations=(),
                keys=Keys({}, Secret("")),
                token=None,
                proxies=None,
                peer_certificate=None,
            )
            for name, own in settings.items()
        },
        rollouts[0] if rollouts.count(rollouts[0]) == len(rollouts) else RolloutSettings(),
    )


def broken(error: BaseException) -> str:
    """Describe in one line why the plan is broken."""
    if isinstance(error, UserError):
        first, *more = error.findings
        problem = f"{first.subject}: {first.observed}" + (f", and {len(more)} more" if more else "")
    else:
        problem = f"{type(error).__name__}: {error}"
    return (
        f"the plan is broken: {visible(problem, _LONGEST)} (sparkwright deploy --dry says "
        "all of it); what follows is what the hosts say"
    )


def _settings(data: Mapping[str, Any]) -> HostSettings:
    """Settings that are everybody's, but for those that are read and can be ones."""
    texts: dict[str, Any] = {"services": {}}
    for key in _READ:
        if key in data:
            try:
                HostSettings.model_validate({"services": {}, key: data[key]})
            except ValidationError:
                continue
            texts[key] = data[key]
    return HostSettings.model_validate(texts)
