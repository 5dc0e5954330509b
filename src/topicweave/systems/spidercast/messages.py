"""What SpiderCast nodes say to each other (§2.3, Figures 2 and 4).

Both maintenance tasks of a node use the same messages; `task` tells which one is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from topicweave.blocks.label_table import LabelTable
from topicweave.model.ids import Interest, NodeId
from topicweave.port import Message


class Connect(Message, frozen=True, array_like=True, tag="sc-connect"):
    """Be my neighbour. Carries the asker's degree, target degree and interest."""

    task: str
    degree: int
    target: int
    version: int
    interest: Interest


class ConnectOk(Message, frozen=True, array_like=True, tag="sc-connect-ok"):
    """You are my neighbour now."""

    task: str
    degree: int
    target: int
    version: int
    interest: Interest


class Redirect(Message, frozen=True, array_like=True, tag="sc-redirect"):
    """I am full: try this neighbour of mine."""

    task: str
    peer: NodeId

    def introduces(self) -> Iterable[NodeId]:
        return (self.peer,)


class Disconnect(Message, frozen=True, array_like=True, tag="sc-disconnect"):
    """I could do without our link: can you?"""

    task: str


class DisconnectOk(Message, frozen=True, array_like=True, tag="sc-disconnect-ok"):
    """I can: the link is gone."""

    task: str


class DisconnectNo(Message, frozen=True, array_like=True, tag="sc-disconnect-no"):
    """I cannot: the link stays. (In the paper a refusal is silent, and the other node waits in vain.)"""

    task: str


class Leave(Message, frozen=True, array_like=True, tag="sc-leave"):
    """You are not my neighbour in this task. `gone`: in no task, because the sender leaves the overlay."""

    task: str = ""
    gone: bool = False


class TaskState(msgspec.Struct, frozen=True, array_like=True):
    """One task's degree and target, from which neighbours judge whether it could spare a link; and whether it
    could spare the link to the receiver.
    """

    task: str
    degree: int
    target: int
    spare: bool = False


class Heartbeat(Message, frozen=True, array_like=True, tag="sc-heartbeat"):
    """I am alive; this is the state of the tasks in which I count you as a neighbour.

    Interests may be long and seldom change, so a heartbeat holds only their version.
    """

    version: int
    states: tuple[TaskState, ...]
    labels: LabelTable | None = None
    asks: bool = False
    """I heard nothing from you for a while. Are you there?"""


class InterestQuery(Message, frozen=True, array_like=True, tag="sc-interest-query"):
    """Your interest has a version that I do not know. Tell me the interest."""


class InterestUpdate(Message, frozen=True, array_like=True, tag="sc-interest-update"):
    """This is what I want now."""

    version: int
    interest: Interest


CONTROL_KINDS = (
    "sc-connect",
    "sc-connect-ok",
    "sc-redirect",
    "sc-disconnect",
    "sc-disconnect-ok",
    "sc-disconnect-no",
    "sc-leave",
)
"""The messages that make and break links. §3.8.1 counts these per join or leave, without heartbeats."""
