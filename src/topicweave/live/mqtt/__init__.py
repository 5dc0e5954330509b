"""MQTT 3.1.1 and 5.0 for local clients: the mesh takes the broker's place, and every machine has a door of its own.

packets    what a packet says                                   plain data
codec      packets to bytes and back                            no I/O
topics     names and filters
session    what a door owes one client, connected or not        no I/O
door       sessions, retained values, wills, permissions        one per node
keeping    what outlives the process
server     sockets and clocks around it                         asyncio
"""
