"""The command line, as programs and people meet it."""
