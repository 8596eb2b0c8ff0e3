"""Texts of mistakes on a command line or in a site."""

from sparkwright.findings.user_error import Messages

MESSAGES = Messages(__file__)
