"""The virtual fleet: real systemd, SSH and Docker; stand-ins for what can not be had here."""
