"""Every check of a fabric."""

from pathlib import Path

from sparkwright.checks.fabric import checks, groups
from sparkwright.findings.check import Checks

CHECKS = Checks[groups.Fabric]([Path(__file__).with_name("checks.yaml")], [checks])
