"""The fabric between hosts: cabling, faults, addresses, speed."""
