"""The site: one line per role, in order. Run with `pyinfra inventory/lab.py deploy.py`."""

from __future__ import annotations

from roles.bootstrap import bootstrap
from roles.fetched import fetched
from roles.image import image
from roles.peers import peers
from roles.preflight import preflight
from roles.proxy import proxy
from roles.serving import serving
from roles.smoke import smoke
from roles.storage import storage
from roles.watch import watch
from roles.weights import weights

bootstrap()
preflight()
storage()
peers()
weights()
image()
fetched()
proxy()
serving()
smoke()
watch()
