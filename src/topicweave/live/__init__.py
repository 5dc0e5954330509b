"""World two: the same systems over real sockets.

`connect` is the whole of the public API; `Settings` says what a node is to be.
"""

from topicweave.live.application import Receipt, Received
from topicweave.live.node import LiveNode, connect
from topicweave.live.settings import Limits, Settings

__all__ = ["Limits", "LiveNode", "Receipt", "Received", "Settings", "connect"]
