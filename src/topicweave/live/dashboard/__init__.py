"""The overlay, shown while it runs: what nodes tell of themselves, one picture of it, and the page that draws it.

`watch` looks at one node, `picture` puts together what several tell, `figures` are its time series, `showing` hands it to browsers, `recording` to a file.
`supervisor` runs a swarm of processes on this machine and does to it what the page's buttons say; `nursery` is where these processes are born.
"""
