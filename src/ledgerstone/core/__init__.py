"""The pure core: values, rules and proofs. No clock, randomness, files, environment, network or logging."""
