"""Notices sent to servers of this machine."""
