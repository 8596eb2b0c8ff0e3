"""Runs over a site. The standard library is patched for gevent before pyinfra is imported."""

import sys

from gevent import events, monkey

# Do not patch if TLS is already imported, as in a test process; pyinfra's own command line patches
# before its other imports.
if "ssl" not in sys.modules:
    # Skip gevent's plugins: gevent searches for plugins 32 times, each time in the metadata of
    # every installed distribution.
    events.notify_and_call_entry_points = events.notify
    monkey.patch_all()
