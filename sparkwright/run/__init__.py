"""Runs over a site. The standard library is patched for gevent before pyinfra is imported."""

import sys

from gevent import monkey

# Not beside a TLS that is in use, as in a process of tests; pyinfra's own command line patches
# before anything else.
if "ssl" not in sys.modules:
    monkey.patch_all()
