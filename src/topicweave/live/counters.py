"""What a node counts: plain integers for metrics, health and tests. They are never reset."""

from __future__ import annotations

MEANINGS = {
    "application_drops": "events that the application did not take in time; each is announced to it as a gap",
    "bans": "times that a peer was shut out for a while for what it did",
    "bytes_received": "bytes that came from other nodes",
    "bytes_sent": "bytes that went to other nodes",
    "caught_up": "events that came by catching up, after they were missed at first",
    "connections_opened": "connections to other nodes that said hello",
    "connections_refused": "connections of strangers that were not let in",
    "deliveries": "events handed to the application, each once",
    "dials_failed": "attempts to reach a peer that failed",
    "duplicate_names": "nodes that came with the name of one that is connected",
    "events_dropped": "events not sent because a peer's queue was full or nobody knew where it is; the peer catches up",
    "events_missed": "events that will not come any more, as announced in gaps",
    "far_travelled": "events refused because they had made too many hops",
    "forged_events": "events with a wrong signature; whoever passed one on is cut off",
    "frames_received": "frames that came from other nodes",
    "frames_sent": "frames that went to other nodes",
    "gaps_announced": "gaps that the application was told of",
    "gossip_dropped": "messages without events not sent because a peer's queue was full",
    "incomplete_patterns": "times that a pattern was found not to know all its topics; its subscribers are told",
    "inventories_unmet": "times that a peer offered events that it did not have",
    "links_lost": "connections that ended without a goodbye",
    "messages_received": "messages of the system and of catching up that came",
    "messages_sent": "messages of the system and of catching up that went",
    "node_errors": "failures inside the node that were contained; health tells the last one",
    "protocol_errors": "connections ended because what came made no sense",
    "publishes": "events published by this node",
    "rate_limited": "times that a peer was not read from because it was over its allowance",
    "receptions_unwanted": "events that came though this node does not want their topic, repetitions included",
    "receptions_wanted": "events that came on topics that this node wants, repetitions included",
    "refused_by_peers": "events of this node that neighbours refused; health tells why",
    "refused_events": "events that this node refused, with the reason told to their sender",
    "replays_dropped": "events that came again; no application gets one twice",
    "slow_peers_closed": "peers cut off because they read too slowly",
    "store_failures": "writes that the data folder did not take; they are tried again",
    "telemetry_lost": "rows of telemetry that were not written, because its folder took nothing for too long",
    "undurable_events": "events handed over without being kept, while the data folder took nothing",
    "unproven_addresses": "addresses not believed because their owner's signature was missing or wrong",
    "unproven_contacts": "times that a node was not believed to want topics, or to want them no more, because its own proof was wrong",
    "unroutable": "messages to peers whose address nobody knows",
    "unverifiable_events": "events refused because their publisher's certificate is unknown, expired or revoked",
    "withheld_events": "events not passed to a peer whose certificate does not allow their topic",
}
"""What each counts, as the metrics explain it."""


class Counters:
    """One node's counts. The names are those of the metrics (`topicweave_NAME_total`)."""

    __slots__ = tuple(MEANINGS)

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
    incomplete_patterns: int
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
    telemetry_lost: int
    undurable_events: int
    unproven_addresses: int
    unproven_contacts: int
    unroutable: int
    unverifiable_events: int
    withheld_events: int

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}
