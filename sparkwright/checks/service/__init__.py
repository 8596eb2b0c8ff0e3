"""What is wrong with hosts, why, and what to do.

Nothing is imported here: each deploy needs the watch's configuration, few need the checks.
"""
