"""Vitis, RVR and OPT cycle by cycle, ten thousand nodes as arrays."""
