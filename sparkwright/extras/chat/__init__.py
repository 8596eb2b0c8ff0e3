"""A conversation with a service of the fleet, like a client's: over the network, with the
fleet's key, and with the advised sampling of the name.
"""
