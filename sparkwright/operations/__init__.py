"""pyinfra operations, for any deploy.

This package also has the types of the operations' arguments.
"""

from sparkwright.host.control import ControlRequest
from sparkwright.host.directories import Directory
from sparkwright.host.disk_usage import DiskUsageRequest
from sparkwright.host.exclusive.activate import ActivateRequest
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.maintenance import MaintenanceRequest
from sparkwright.host.proof import ModelAt, ProofRequest
from sparkwright.host.service import Service, SmokeRequest

__all__ = [
    "ActivateRequest", "ControlRequest", "Directory", "DiskUsageRequest", "FetchFile",
    "MaintenanceRequest", "ModelAt", "Ping", "ProofRequest", "Service", "SmokeRequest",
]  # fmt: skip
