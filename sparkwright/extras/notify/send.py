"""Sending a notice, by Apprise.

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

#: Seconds that one notice may take: a server that answers drop by drop ends no run.
TIMEOUT = 30.0
#: Bytes of memory that it may take beyond what there is: nor does one that answers without end.
_MEMORY = 512 << 20
#: Exit codes of deliver.py that say all.
_OUTCOMES = {0: None, 3: "this is no address that Apprise can send to"}
_STATUS = re.compile("error=([0-9]{3})")


def send(address: Address, title: str, body: str) -> str | None:
    """Send it once. Returns why it could not be sent, or None.

    Raises:
        UserError: without Apprise.
    """
    if find_spec("apprise") is None:
        raise Messages(__file__).refusal("no-apprise", "notify")
    url = address.url.value
    # A webhook of a chat that Apprise knows gets what that chat reads; any other one JSON.
    urls = [url, as_json(url)] if url.startswith(("http://", "https://")) else [url]
    request = {"urls": urls, "title": title, "body": body, "memory": _MEMORY}
    # A process of its own: its faults and its memory end nothing else. -P: no name of a file beside
    # it hides a module.
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
    # In words of ours: what servers and Apprise say may have the address in it.
    if status := _STATUS.search(done.stderr):
        to = ": it sends on to another address, which is not followed"
        return f"HTTP {status[1]}{to if status[1].startswith('3') else ''}"
    return "no connection, or the server refuses it"
