"""What installs Docker, Compose, toolkit and driver on a host, by its distribution.

Each package named here exists there. Debian 12 itself has Docker 20.10 and Compose 1.29, which are
too old; Debian 13 has driver 550 (real hosts in docs/).
"""

from __future__ import annotations

from sparkwright.host.observation import Distribution

_DOCKER = "https://docs.docker.com/engine/install/"
_TOOLKIT = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
)
_CUDA = "https://developer.nvidia.com/cuda-downloads"
_DASHBOARD = (
    "DGX Dashboard, or 'sudo apt update && sudo apt dist-upgrade && sudo fwupdmgr upgrade' and a "
    "reboot"
)


def docker(on: Distribution) -> str:
    """Have Docker Engine."""
    own = {
        "dgx": "DGX OS has it preinstalled (sudo apt install nv-docker-options where that is "
        "missing), or ",
        "ubuntu": "sudo apt install docker.io docker-compose-v2, or ",
        "debian": "sudo apt install docker.io docker-cli docker-compose, or "
        if on.major >= 13
        else "",
    }
    return f"{own.get(on.kind, '')}install Docker from its own repository: {_DOCKER}"


def compose(on: Distribution) -> str:
    """Have Compose as Docker's plugin."""
    own = {"ubuntu": "docker-compose-v2", "debian": "docker-compose" if on.major >= 13 else ""}
    package = own.get(on.kind)
    plugin = f"sudo apt install docker-compose-plugin, of Docker's own repository ({_DOCKER})"
    return (
        f"sudo apt install {package} (where Docker is docker.io), or {plugin}"
        if package
        else plugin
    )


def toolkit(on: Distribution) -> str:
    """Have NVIDIA's container toolkit."""
    install = "sudo apt install nvidia-container-toolkit && sudo systemctl restart docker"
    return install if on.kind == "dgx" else f"add NVIDIA's repository ({_TOOLKIT}), then {install}"


def driver(on: Distribution) -> str:
    """Have a driver that is new enough."""
    return {
        "dgx": _DASHBOARD,
        "ubuntu": "sudo apt install nvidia-driver-580-open, and a reboot",
        "debian": f"NVIDIA's repository ({_CUDA}: cuda-keyring), then sudo apt install "
        "linux-headers-amd64 nvidia-open, and a reboot",
    }.get(on.kind, f"driver 580 or newer of your distribution or from {_CUDA}, and a reboot")
