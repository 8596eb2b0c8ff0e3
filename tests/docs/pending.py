"""What pages name already and others add next. A test fails once it is there: remove it here."""

FILES = {"docs/upgrading.md"}
COMMANDS = {"init"}
