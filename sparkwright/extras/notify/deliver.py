"""Send a notice by Apprise, in a separate process: ``python deliver.py``.

Standard input is a JSON object: URLs (the first URL that Apprise supports is used), title,
body, and the memory limit in bytes. Output of Apprise and servers goes to standard error; the exit
code is 0 for a delivered notice, and 3 if Apprise supports none of the URLs.
"""

import json
import logging
import resource
import sys
from pathlib import Path

import apprise


def main(urls: list[str], title: str, body: str, memory: int) -> int:
    """Send the notice once, and return the exit code.

    A redirect is not followed: it could lead the address's token to another host.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + memory
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or bound < soft:
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    logging.basicConfig(level=logging.WARNING)
    asset = apprise.AppriseAsset(
        app_id="sparkwright", app_desc="sparkwright", app_url="", http_redirects=False,
        image_url_mask="", image_url_logo="",
    )  # fmt: skip
    targets = (apprise.Apprise.instantiate(url, asset=asset) for url in urls)
    target = next(filter(None, targets), None)
    if target is None:
        return 3
    # Apprise's own notify would read a configuration and tags from the environment.
    return int(not target.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT))


if __name__ == "__main__":
    sys.exit(main(**json.load(sys.stdin)))
