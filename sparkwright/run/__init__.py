"""Runs over a site. The standard library is patched for gevent before pyinfra's import."""

import sys

from gevent import events, monkey

# Do not patch if ssl is already imported, as in a test process or under pyinfra's command line,
# which patches the library itself.
if "ssl" not in sys.modules:
    # Skip gevent's plugins: gevent would search the metadata of every installed distribution 32
    # times.
    events.notify_and_call_entry_points = events.notify
    monkey.patch_all()
