"""Runs over a site. The standard library is patched for gevent before pyinfra is imported."""

import sys

from gevent import events, monkey

# Do not patch beside a TLS that is in use, as in a process of tests; pyinfra's own command line
# patches before anything else.
if "ssl" not in sys.modules:
    # No other package's plugin takes part in this: gevent looks for one 32 times, each time in the
    # metadata of every installed distribution.
    events.notify_and_call_entry_points = events.notify
    monkey.patch_all()
