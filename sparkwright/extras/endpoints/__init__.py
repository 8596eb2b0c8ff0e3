"""The endpoints of a planned fleet, and configuration of its clients.

Keys are only named: the output may be shown, mailed and committed.
"""
