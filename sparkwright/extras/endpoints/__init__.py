"""A planned fleet from the clients' view, and the clients' own configuration made from it.

Keys are only named: the output may be shown, mailed and committed.
"""
