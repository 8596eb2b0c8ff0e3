"""Runs over a site. The standard library is patched for gevent before pyinfra is imported."""

from gevent import monkey

if not monkey.is_module_patched("socket"):  # pyinfra's own command line has done it
    monkey.patch_all()
