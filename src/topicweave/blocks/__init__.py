"""Shared parts of nodes, each written once: no I/O, no clock, no global randomness."""
