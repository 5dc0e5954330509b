"""The published systems and their baselines: one node's half each."""
