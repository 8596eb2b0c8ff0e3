"""Faults of hosts, their causes, and their remedies.

Nothing is imported here: each deploy needs the watch's configuration, few need the checks.
"""
