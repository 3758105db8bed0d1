"""One storage boundary, native backends."""
