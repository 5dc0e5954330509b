"""Array engines: they compute whole networks in rounds, one engine per system, by the same rules as the nodes."""
