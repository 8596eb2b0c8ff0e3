"""Finding Sparks and other boxes on the LAN: who announces SSH, whom the user's SSH knows, and what
they are."""
