"""Tests of the MCP door, through the official client: in memory, and over stdio against the real process."""
