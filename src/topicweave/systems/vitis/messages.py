"""What the nodes of a rendezvous overlay (Vitis, RVR) say to each other about their links."""

from __future__ import annotations

from typing import ClassVar

from topicweave.blocks.descriptors import Descriptor
from topicweave.port import Message


class Profile(Message, frozen=True, array_like=True, tag="vitis-profile"):
    """I am alive, and this is what I want (Alg. 6).

    `chosen`: you are in my routing table; if not, I am in yours. The gateway proposals are three columns one
    after another, each with eight bytes (little-endian) per topic of the descriptor's profile, in the order
    of the topics' identifiers: the proposed gateways, the parents that proposed them, the hops. They are
    empty if the sender elects no gateways.
    """

    descriptor: Descriptor
    chosen: bool
    proposals: bytes = b""
    number: int = 0
    """Another one for each content, from one life of the sender to the next, too."""


class ProfileChange(Message, frozen=True, array_like=True, tag="vitis-change"):
    """I am alive, and my profile is that of number `since` but for these proposals, and for whether I chose you.

    Four bytes (little-endian) name each place in the order of the topics. The proposals are three columns as
    in a profile, with those of these places only.
    """

    wire: ClassVar[int] = 6

    since: int
    number: int
    chosen: bool
    places: bytes
    proposals: bytes


class Alive(Message, frozen=True, array_like=True, tag="vitis-alive"):
    """I am alive, and all is as my profile of this number said."""

    number: int
    chosen: bool


class TellProfile(Message, frozen=True, array_like=True, tag="vitis-tell"):
    """Your profile, or what the change builds on, I do not have: tell me all of it."""


class Parted(Message, frozen=True, array_like=True, tag="vitis-parted"):
    """You are not in my routing table any more."""


class Refused(Message, frozen=True, array_like=True, tag="vitis-refused"):
    """I serve as many as I can who chose me: take somebody else."""


class Gone(Message, frozen=True, array_like=True, tag="vitis-gone"):
    """I leave the overlay."""


CONTROL_KINDS = ("vitis-parted", "vitis-refused", "vitis-gone")
"""The messages that end links; links are made by the first `Profile`."""
