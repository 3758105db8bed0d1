"""Processes killed and bits flipped: what is left of a store afterwards."""
