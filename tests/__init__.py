"""What is promised, one test a promise."""
