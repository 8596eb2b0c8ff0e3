"""Deployment of model services on hosts with pyinfra.

Only ``facts``, ``operations`` and ``run`` import pyinfra, and ``host`` runs on the hosts. The other
packages turn catalog, settings and the results of a probe into a plan, rendered files, findings and
a report.
"""

__version__ = "0.2.0"
