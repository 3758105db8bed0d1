"""The semantic lane: encoders, the table, vectors in the store."""
