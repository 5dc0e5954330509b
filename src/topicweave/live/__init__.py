"""World two: live nodes, which run the systems over real sockets.

`connect` starts a node; `Settings` says how the node is set up. That is the whole public API.
"""

from topicweave.client.words import Gap
from topicweave.live.application import Receipt, Received
from topicweave.live.node import LiveNode, connect
from topicweave.live.settings import Limits, LogLimits, Settings

__all__ = ["Gap", "Limits", "LiveNode", "LogLimits", "Receipt", "Received", "Settings", "connect"]
