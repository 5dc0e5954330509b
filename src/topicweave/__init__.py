"""Topicweave: brokerless, topic-based publish/subscribe for nodes that each want many topics."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from topicweave.live import connect

__all__ = ["__version__", "connect"]


def __getattr__(name: str) -> Any:
    """`topicweave.connect`, imported when it is first used: simulations need no sockets."""
    if name == "connect":
        from topicweave.live import connect

        return connect
    raise AttributeError(f"module 'topicweave' has no attribute {name!r}")
