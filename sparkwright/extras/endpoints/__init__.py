"""A planned fleet as clients see it, and the clients' own configuration made of it.

Keys are only ever named: what is written here may be shown, mailed and committed.
"""
