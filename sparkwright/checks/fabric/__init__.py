"""The fabric between hosts: how they are cabled, what is wrong with it, addresses, speed."""
