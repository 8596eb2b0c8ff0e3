"""Planned services as files of other tools, which take them over with the same bytes.

Keys are only ever named: what is written here may be shown, mailed and committed.
"""
