"""Format 1 as bytes: frozen files that every implementation must agree with."""
