"""The site: one line per role, in order. `pyinfra inventory/lab.py deploy.py`"""

from __future__ import annotations

from roles.door import door
from roles.image import image
from roles.jobs import fetched
from roles.preflight import preflight
from roles.serving import serving
from roles.sharing import sharing
from roles.smoke import smoke
from roles.storage import storage
from roles.watch import watch
from roles.weights import weights

preflight()
storage()
sharing()
weights()
image()
fetched()
door()
serving()
smoke()
watch()
