"""The dashboard: nodes report what they see, and a page draws the overlay while it runs.

`watch` reads one node, `picture` combines the reports of several nodes, `figures` are the picture's time
series, `showing` sends it to browsers, `recording` to a file. `supervisor` runs a swarm of processes on this
machine and carries out the page's buttons; `nursery` starts these processes.
"""
