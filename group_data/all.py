"""Settings of every host. What stands here commented out is the default.

An unknown key is an error, so that a typo can't pass unnoticed; keys of your own for your own
use start with `my_`.
"""

# Where models and services live on the hosts. models_root may be a file system of its own.
# models_root = "/opt/models"
# services_root = "/opt/sparkwright"

# GiB that must stay free after image and weights are fetched.
# disk_headroom_gib = 20

# How weights are fetched: "hf_transfer" (as fast as the connection), "xet" (from the hub's Xet
# storage where it has the file) or "http" (a tenth of the memory).
# downloader = "hf_transfer"
# download_connections = 16
# download_limit_mb = 40         # megabytes per second at most, for the image and for each model

# Hosts take from each other what one of them has or fetches: it comes from outside once.
# peer_sharing = True
# peer_port = 18650

# Where earlier downloads may lie on hosts; what has the right content is taken from there.
# adopt_directories = ["/opt/qwen36", "/models", "/home/*/.cache/huggingface/hub"]

# A tag of the image for every service, instead of the newest one in the catalog. Changing it
# here, or with `--data 'image_tag="..."'`, is how a new tag is rolled out.
# image_tag = "2026-08-17-v0.27.1-slim"

# How hosts that serve already are switched to it: see docs/rollouts.md.
# rollout = {"canaries": 1, "batch": "25%", "soak_seconds": 75, "on_failure": "halt"}
# keep_releases = 3              # to go back to, with their images and weights

# One address for all models: on the host that is to have it, in the inventory (docs/proxy.md).
# address = {"port": 8080}

# Mirrors: pull from these instead, by registry; look models up at another hub.
# image_mirrors = {"ghcr.io": "http://192.168.1.5:5000"}   # also for a git address to build from
# hub_endpoint = "https://huggingface.co"

# The fleet's API key: made here at the first run (0600, ignored by git), unless the environment
# has SPARKWRIGHT_API_KEY. A token for gated models comes from HF_TOKEN, or from a file:
# api_key_file = ".sparkwright/api_key"
# hub_token_file = "..."
# Accounts of private registries, in a file as `docker login` writes it:
# registry_auth_file = "/home/me/.docker/config.json"
# Keys of clients, that proxies tell apart and that are revoked one by one (docs/proxy.md):
# keys = {"openclaw": {}, "laptop": {}}
# Secrets can come from a command of the controller instead:
# api_key_command = ["pass", "show", "lab/api-key"]
# hub_token_command = ["op", "read", "op://lab/hugging-face/token"]
# registry_auth_command = ["sops", "-d", "registries.json"]

# Clients come by https: "own" makes a CA here and a certificate for each host, and renews it; or
# name your own. See docs/proxy.md. The default is http, for a home LAN.
# tls = "own"
# tls = {"certificate": "tls/fleet.pem", "key": "tls/fleet.key"}

# Pins of every tag and revision, made by `sparkwright lock INVENTORY`; used when it is there.
# lock_file = "fleet.lock"

# A timer on each host looks at services, GPU and disks every minute; `sparkwright status` shows it.
# watch = True

# What else runs on the hosts, in GiB, so that a Spark's one pool of memory is weighed with it.
# sidecars = {"qwen3-asr": 6, "qwen3-tts": 8}

# A bare host is made ready first, by the steps that are named here (docs/install.md):
# bootstrap = ["docker", "nvidia-container-toolkit", "docker-group"]

# Directories with catalog entries of your own, over the ones that are shipped.
# catalog_directories = ["my-catalog"]
