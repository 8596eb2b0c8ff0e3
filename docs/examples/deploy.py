"""Deploy a service to a box with Docker, without a site: pyinfra BOX deploy.py"""

from pyinfra import host

from sparkwright.operations import directories, docker, gpu, images, models, proxies, services
from sparkwright.run.planned import planned

box = planned(services={"chat": {"recipe": "qwen36-35b-a3b-heretic-dflash", "port": 8000}})
gpu.verify()
docker.verify()
docker.verify_container_toolkit()
directories.present(directories=box.directories)
for image in host.loop(box.desired.images):
    images.present(**image.arguments)
for model in host.loop(box.desired.models):
    models.present(**model.arguments)
proxies.installed()
proxies.serving(box.proxies, proxies.files_of(box.proxies, box.keys, box.desired.plan))
services.running(services=box.desired.services, secrets=box.secrets)
