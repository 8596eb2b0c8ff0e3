"""Planned services as files of other tools, with the same bytes.

Keys are only named: the output may be shown, mailed and committed.
"""
