"""Settings of every host. The lines that are commented out show the defaults, or examples.

An unknown key is an error, so that no typo goes unnoticed. The names of your own variables must
start with `my_`.
"""

# Directories of models and services on the hosts. models_root may be a separate file system.
# models_root = "/opt/models"
# services_root = "/opt/sparkwright"

# GiB that must stay free on the disk after image and weights are fetched.
# disk_headroom_gib = 20

# Downloader of weights: "hf_transfer" (as fast as the connection), "xet" (from the hub's Xet
# storage, if that storage has the file) or "http" (a tenth of the memory).
# downloader = "hf_transfer"
# download_connections = 16
# download_limit_mb = 40         # largest rate in MB/s, for the image and for each model

# Hosts fetch content from each other, so that only one host downloads it from the internet.
# peer_sharing = True
# peer_port = 18650

# Directories of earlier downloads on the hosts: files with the right content are reused.
# adopt_directories = ["/opt/qwen36", "/models", "/home/*/.cache/huggingface/hub"]

# Image tag of every service, instead of the catalog's newest tag. To roll out a new tag, change
# the tag here, or deploy with `--data 'image_tag="..."'`.
# image_tag = "2026-08-17-v0.27.1-slim"

# Order and pace in which hosts that already serve are switched (docs/rollouts.md).
# rollout = {"canaries": 1, "batch": "25%", "soak_seconds": 75, "on_failure": "halt"}
# keep_releases = 3              # releases to go back to, with their images and weights

# One address for all models: set this for a single host, in the inventory (docs/proxy.md).
# address = {"port": 8080}

# Mirrors to pull from, by registry; and another hub for models.
# image_mirrors = {"ghcr.io": "http://192.168.1.5:5000"}   # also by the git address of a build
# hub_endpoint = "https://huggingface.co"

# File of the fleet's API key: the first run creates the file (0600, ignored by git), unless the
# environment has SPARKWRIGHT_API_KEY. A token for gated models comes from HF_TOKEN, or a file:
# api_key_file = ".sparkwright/api_key"
# hub_token_file = "..."
# Accounts of private registries, in the format of `docker login`:
# registry_auth_file = "/home/me/.docker/config.json"
# Separate API keys of clients: you can revoke each key on its own (docs/proxy.md):
# keys = {"openclaw": {}, "laptop": {}}
# Commands on the controller can also provide these secrets:
# api_key_command = ["pass", "show", "lab/api-key"]
# hub_token_command = ["op", "read", "op://lab/hugging-face/token"]
# registry_auth_command = ["sops", "-d", "registries.json"]

# https for clients: with "own", sparkwright makes a CA and a certificate for each host, and renews
# the certificates; or name your own certificate (docs/proxy.md). The default is http, for a LAN.
# tls = "own"
# tls = {"certificate": "tls/fleet.pem", "key": "tls/fleet.key"}

# Lock of every tag and revision, made by `sparkwright lock INVENTORY`; used if the file exists.
# lock_file = "fleet.lock"

# A timer on each host checks services, GPU and disks every minute; see `sparkwright status`.
# watch = True

# Memory of other programs on the hosts, in GiB: on a Spark they share the pool with services.
# sidecars = {"qwen3-asr": 6, "qwen3-tts": 8}

# Steps that prepare a bare host before the deploy (docs/install.md):
# bootstrap = ["docker", "nvidia-container-toolkit", "docker-group"]

# Directories with your own catalog entries, which go before the shipped entries.
# catalog_directories = ["my-catalog"]
