"""MQTT 3.1.1 and 5.0: the *door* of a node serves MQTT clients, and the swarm takes the broker's place.

packets    what a packet says                                   plain data
codec      packets to bytes and back                            no I/O
topics     names and filters
session    what a door owes one client, connected or not        no I/O
door       sessions, retained values, permissions               one per node
wills      what is published when a client goes without a word
keeping    data that survives a restart
server     sockets and clocks around it                         asyncio
"""
