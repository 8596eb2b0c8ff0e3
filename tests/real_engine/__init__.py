"""The real engine on this machine, asked by the very program that asks the hosts' services."""
