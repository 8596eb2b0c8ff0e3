"""Send a notice by Apprise.

Report the result, without a traceback and without any part of the address.
"""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from sparkwright.config.notices import Address, as_json
from sparkwright.findings.user_error import Messages

#: Longest time in seconds for a notice: a server that answers slowly must not delay the run.
TIMEOUT = 30.0
#: Bytes of memory beyond the present use: a bound for a server that answers endlessly.
_MEMORY = 512 << 20
#: Exit codes of deliver.py that need no further message.
_OUTCOMES = {0: None, 3: "Apprise does not support this address"}
_STATUS = re.compile("error=([0-9]{3})")


def send(address: Address, title: str, body: str) -> str | None:
    """Send the notice once. Return the reason of a failure, or None.

    Raises:
        UserError: Apprise is not installed.
    """
    if find_spec("apprise") is None:
        raise Messages(__file__).refusal("no-apprise", "notify")
    url = address.url.value
    # A webhook of a chat that Apprise knows gets the chat's format; any other webhook gets JSON.
    urls = [url, as_json(url)] if url.startswith(("http://", "https://")) else [url]
    request = {"urls": urls, "title": title, "body": body, "memory": _MEMORY}
    # A separate process contains faults and memory use. With -P, no file beside the program hides a
    # module.
    program = [sys.executable, "-P", str(Path(__file__).with_name("deliver.py"))]
    try:
        done = subprocess.run(
            program, input=json.dumps(request), text=True, errors="replace", check=False,
            timeout=TIMEOUT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {TIMEOUT:.0f} s"
    if done.returncode in _OUTCOMES:
        return _OUTCOMES[done.returncode]
    # The message is sparkwright's own: output of servers and Apprise may contain the address.
    if status := _STATUS.search(done.stderr):
        to = ": the server redirects, and redirects are not followed"
        return f"HTTP {status[1]}{to if status[1].startswith('3') else ''}"
    return "no connection, or the server refuses the notice"
