"""Promises of the pure core."""
