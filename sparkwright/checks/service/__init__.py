"""Faults of hosts, their causes, and their remedies.

This module imports nothing: every deploy needs the watch's configuration, but few deploys need the
checks.
"""
