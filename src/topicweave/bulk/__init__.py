"""Whole networks as arrays: one engine per system, the same rules as the nodes, in rounds."""
