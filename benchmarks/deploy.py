"""The site up to its services: what is measured is fetching. Named as pyinfra's deploys are."""

from __future__ import annotations

from roles.image import image
from roles.jobs import fetched
from roles.preflight import preflight
from roles.sharing import sharing
from roles.storage import storage
from roles.weights import weights

preflight()
storage()
sharing()
weights()
image()
fetched()
