"""Feeds over the mesh: readers of the same feed share one of them that polls it. See docs/feeds.md."""
