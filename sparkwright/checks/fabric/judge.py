"""Every check of a fabric."""

from pathlib import Path

from sparkwright.checks.fabric import checks
from sparkwright.checks.fabric.groups import Fabric
from sparkwright.findings.check import Checks

CHECKS = Checks[Fabric]([Path(__file__).with_name("checks.yaml")], [checks])
