"""The fabric between hosts: how they are cabled, its fault, addresses, speed."""
