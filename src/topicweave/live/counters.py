"""What a node counts. Plain integers: read by metrics, health and tests; never reset."""

from __future__ import annotations


class Counters:
    """One node's counts. The names are those of the metrics (`topicweave_NAME_total`)."""

    __slots__ = (
        "application_drops",
        "bans",
        "bytes_received",
        "bytes_sent",
        "caught_up",
        "connections_opened",
        "connections_refused",
        "deliveries",
        "dials_failed",
        "duplicate_names",
        "events_dropped",
        "events_missed",
        "far_travelled",
        "forged_events",
        "frames_received",
        "frames_sent",
        "gaps_announced",
        "gossip_dropped",
        "inventories_unmet",
        "links_lost",
        "messages_received",
        "messages_sent",
        "node_errors",
        "protocol_errors",
        "publishes",
        "rate_limited",
        "receptions_unwanted",
        "receptions_wanted",
        "refused_by_peers",
        "refused_events",
        "replays_dropped",
        "slow_peers_closed",
        "store_failures",
        "undurable_events",
        "unproven_addresses",
        "unroutable",
        "unverifiable_events",
        "withheld_events",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    application_drops: int
    bans: int
    bytes_received: int
    bytes_sent: int
    caught_up: int
    connections_opened: int
    connections_refused: int
    deliveries: int
    dials_failed: int
    duplicate_names: int
    events_dropped: int
    events_missed: int
    far_travelled: int
    forged_events: int
    frames_received: int
    frames_sent: int
    gaps_announced: int
    gossip_dropped: int
    inventories_unmet: int
    links_lost: int
    messages_received: int
    messages_sent: int
    node_errors: int
    protocol_errors: int
    publishes: int
    rate_limited: int
    receptions_unwanted: int
    receptions_wanted: int
    refused_by_peers: int
    refused_events: int
    replays_dropped: int
    slow_peers_closed: int
    store_failures: int
    undurable_events: int
    unproven_addresses: int
    unroutable: int
    unverifiable_events: int
    withheld_events: int

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}
