"""Files of the planned services, with the same bytes as on the hosts.

Keys are only named: the output may be shown, mailed and committed.
"""
