"""Plain Python that decides each host's desired state.

Nothing in this package imports pyinfra or touches a provisioned host: it turns catalog, settings
and the results of a probe into a plan, rendered files, findings and a report.
"""

__version__ = "0.2.0"
