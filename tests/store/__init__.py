"""Promises of the store, for each backend and for SQLite's own."""
