"""World two: the same systems over real sockets.

`connect` is the whole of the public API; `Settings` says what a node is to be.
"""

from topicweave.client.words import Gap
from topicweave.live.application import Receipt, Received
from topicweave.live.node import LiveNode, connect
from topicweave.live.settings import Limits, LogLimits, Settings

__all__ = ["Gap", "Limits", "LiveNode", "LogLimits", "Receipt", "Received", "Settings", "connect"]
