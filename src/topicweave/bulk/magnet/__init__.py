"""The trees of Magnet and its strawman at rest, computed as arrays."""
