"""Messages of queries to registries, hubs and git, and of what they answer."""

from sparkwright.findings.user_error import Messages

MESSAGES = Messages(__file__)
