"""The virtual fleet: real systemd, SSH and Docker; fakes for hardware that this machine lacks."""
