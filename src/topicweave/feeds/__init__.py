"""RSS and Atom feeds over a swarm: one reader of a feed polls it for all. See docs/feeds.md."""
