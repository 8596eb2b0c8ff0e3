"""Faults of hosts, their causes, and their remedies.

This module imports nothing: each deploy needs the watch's configuration, few deploys need the
checks.
"""
