"""Ledgerstone: durable, verifiable memory for AI agents."""
