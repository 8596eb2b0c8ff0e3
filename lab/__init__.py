"""The virtual fleet: real systemd, SSH and Docker; fakes for what can not be had here."""
