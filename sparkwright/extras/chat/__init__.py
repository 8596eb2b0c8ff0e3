"""A conversation with a service of the fleet, as from a client: over the network, with the fleet's
key, and with the advised sampling for the model.
"""
