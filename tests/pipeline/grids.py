"""Sweeps for the tests of this folder."""

GRID = """
name = "small"
seeds = [1, 2, 3]
settle = 4.0
[[systems]]
name = "random"
[[workloads]]
model = "spidercast"
nodes = 20
topics = 10
min_size = 3
max_size = 3
"""
