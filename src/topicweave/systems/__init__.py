"""The systems: those of the papers, their baselines, and our own. Each is written as the code of one node."""
