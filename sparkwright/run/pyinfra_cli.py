"""Run pyinfra's command line in this process, without pyinfra's frames around sparkwright's
output.
"""

import re
import sys
from collections.abc import Sequence

from sparkwright.facts import hooks


def main(arguments: Sequence[str]) -> None:
    """Run pyinfra with these arguments, and end the process as pyinfra does.

    With ``-v`` pyinfra's frames are shown.
    """
    if not any(re.fullmatch(r"-\w*v\w*|--debug.*", word) for word in arguments):
        hooks.hide_frames()
    # `hooks.command_line` reads this value to prepare hosts.
    sys.argv = ["pyinfra", *arguments]
    hooks.own("main").main()
