"""A run that goes by what the hosts say where the plan is broken.

Commands of an emergency ask for it: they need inventory and connections, and no more of the user's
files.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from gevent import Timeout

from sparkwright.config.connection_data import connection_data
from sparkwright.config.inventory import check_inventory
from sparkwright.facts import hooks
from sparkwright.findings.user_error import refusal
from sparkwright.run.state import Run
from sparkwright.site.planless import broken

#: Seconds that planning may take in an emergency: registry and hub answer in two or three.
_PATIENCE = 15


def check_files(
    inventory: str, group_data: Sequence[str], overrides: Sequence[str]
) -> BaseException | None:
    """Check the user's files; group_data is left out where it can't be read.

    Returns:
        What is wrong with group_data.

    Raises:
        UserError: when the inventory itself can't be read.
    """
    check_inventory(inventory, (), overrides, own_folder=False)
    try:
        check_inventory(inventory, group_data, overrides)
    except (Exception, SystemExit) as error:
        hooks.pass_over_broken_group_data(lambda file: connection_data(Path(file)))
        return error
    return None


def run_of(
    planned: Callable[[], Run], unplanned: Callable[[str], Run], wrong: BaseException | None
) -> Run:
    """The planned run; or one that goes by what the hosts say.

    Args:
        unplanned: makes that run, of a line that says what is broken.
        wrong: why it can't be planned, as far as that is known before.
    """
    what = f"registry, hub or a command for a secret gave no answer within {_PATIENCE} s"
    remedy = "check the connection, or lock the fleet"
    try:
        if wrong is not None:
            raise wrong
        with Timeout(_PATIENCE, refusal("the internet", what, remedy)):
            return planned()
    except (Exception, SystemExit) as error:
        return unplanned(broken(error))
