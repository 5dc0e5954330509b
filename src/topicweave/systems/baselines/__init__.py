"""The simpler systems that the papers compare themselves with."""
