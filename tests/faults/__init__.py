"""What is left of a store, and true of what was said, when files, power, processes and clocks fail."""
