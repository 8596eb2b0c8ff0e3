"""What pages name already and others add next. A test fails once it is there: remove it here."""

FILES: set[str] = set()
COMMANDS: set[str] = set()
