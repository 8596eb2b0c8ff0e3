"""The site up to its services: only fetching is measured. The file has the usual name of a pyinfra
deploy.
"""

from roles.fetched import fetched
from roles.image import image
from roles.peers import peers
from roles.preflight import preflight
from roles.storage import storage
from roles.weights import weights

preflight()
storage()
peers()
weights()
image()
fetched()
