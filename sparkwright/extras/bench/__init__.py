"""What was measured on a service: kept as files, held against the cards and its own past."""
