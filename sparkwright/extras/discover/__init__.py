"""Finding Sparks and other boxes on the LAN: hosts that announce SSH, and hosts that the user's SSH
knows."""
