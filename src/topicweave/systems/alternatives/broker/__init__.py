"""A broker: one node that everybody sends to and receives from."""

from topicweave.systems.alternatives.broker.messages import CONTROL_KINDS
from topicweave.systems.alternatives.broker.node import BrokerNode
from topicweave.systems.alternatives.broker.parameters import BrokerParameters
from topicweave.systems.system import System

BROKER = System(
    name="broker",
    summary="a star: the node of the lowest identifier passes everything on, until it fails and the next one does",
    source="common practice (MQTT, AMQP), with an elected broker in place of a server",
    parameters=BrokerParameters,
    build=BrokerNode,
    connects_topics=True,
    needs="peers",
    control_kinds=CONTROL_KINDS,
)

__all__ = ["BROKER", "CONTROL_KINDS", "BrokerNode", "BrokerParameters"]
