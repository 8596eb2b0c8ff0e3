"""A conversation with a service of the fleet, as its own users have one: over the network, with the
fleet's key, and with the sampling that is advised for the name."""
