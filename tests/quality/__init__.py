"""Tests of the benchmark of recall's quality."""
