"""Blocks: parts that the nodes of several systems share. They do no I/O, read no clock and use no global
random numbers.
"""
