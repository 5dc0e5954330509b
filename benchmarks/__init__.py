"""Benchmarks: what is fast, by how much, measured side by side in one run. `make bench` runs them all."""
