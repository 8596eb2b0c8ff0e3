"""Messages about queries to registries, hubs and git, and about their answers."""

from sparkwright.findings.user_error import Messages

MESSAGES = Messages(__file__)
