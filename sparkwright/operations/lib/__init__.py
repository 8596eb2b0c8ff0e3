"""Shared parts of operations."""
