"""All papers, and all run kinds and workload sources by tag: where each is found, imported when it is first
asked for.

A new paper adds itself to `PAPERS`, and nowhere else. Other packages add their run kinds and workload sources
as entry points of the groups `topicweave.runs` and `topicweave.sources`, named by tag.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import msgspec

from topicweave.errors import BadInput, UnknownName
from topicweave.runs.run import Run, Source


class Brought(NamedTuple):
    """The run kinds and workload sources of a paper's own, by tag: module and class within its package."""

    kinds: dict[str, str]
    sources: dict[str, str]


PAPERS = {
    "spidercast": Brought({"like-its-largest-topic": "regular:LikeItsLargestTopic"}, {}),
    "rappel": Brought(
        {
            "feeds": "feeds:Feeds",
            "interest-locality": "basics:InterestLocality",
            "locality-within": "why:LocalityWithin",
            "filter-errors": "basics:FilterErrors",
            "network-check": "basics:NetworkCheck",
            "measured-round-trips": "basics:MeasuredRoundTrips",
        },
        {
            "single-feed": "workloads:SingleFeed",
            "feed-sample": "workloads:FeedSample",
            "community-feeds": "workloads:CommunityFeeds",
        },
    ),
    "vitis": Brought(
        {
            "dissemination": "dissemination:Dissemination",
            "vitis-cycles": "runs:CycledDissemination",
            "vitis-churn": "churned:UnderChurn",
        },
        {
            "vitis-lists": "lists:CorrelatedLists",
            "followers": "workloads:FollowersSample",
            "followers-like": "followers_like:FollowersLike",
            "vitis-trace": "workloads:TraceLists",
        },
    ),
    "magnet": Brought(
        {"magnet-trees": "runs:ConvergedTrees", "magnet-messages": "settled:SettledTrees"},
        {"other-rates": "rates:OtherRates", "topic-sample": "workloads:TopicSample"},
    ),
    "omen": Brought(
        {"mending": "mending:Mended", "mending-messages": "by_messages:MendedByMessages"},
        {"omen-lists": "workloads:SyntheticLists", "social": "workloads:SocialSample"},
    ),
}
"""Packages under `topicweave.papers`, in the order of the scoreboard. Each has `STUDIES` and a `claims.toml`."""


def _of_papers(brought: Callable[[Brought], dict[str, str]]) -> dict[str, str]:
    return {
        tag: f"topicweave.papers.{paper}.{place}"
        for paper, own in PAPERS.items()
        for tag, place in brought(own).items()
    }


KINDS = {
    "overlay": "topicweave.runs.overlay:SettledOverlay",
    "churned": "topicweave.runs.churned:ChurnedOverlay",
    "trial": "topicweave.runs.trial:Trial",
    "live": "topicweave.runs.live_run:LiveRun",
    "patterns": "topicweave.runs.patterned:Patterned",
    "recorded": "topicweave.runs.recorded:RecordedRun",
    **_of_papers(lambda own: own.kinds),
}
SOURCES = {
    "generated": "topicweave.runs.sources:GeneratedWorkload",
    "model": "topicweave.runs.sources:ModelWorkload",
    "stored": "topicweave.runs.sources:StoredWorkload",
    **_of_papers(lambda own: own.sources),
}
_GROUPS = {"run kind": (KINDS, "topicweave.runs"), "workload source": (SOURCES, "topicweave.sources")}


def find_kind(tag: str) -> type[msgspec.Struct]:
    """The struct of a run kind. Raises `UnknownName`."""
    return _find("run kind", tag)


def find_source(tag: str) -> type[msgspec.Struct]:
    """The struct of a workload source. Raises `UnknownName`."""
    return _find("workload source", tag)


@cache
def _find(what: str, tag: str) -> type[msgspec.Struct]:
    ours, group = _GROUPS[what]
    theirs: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        first = theirs.setdefault(point.name, point)
        if point.name == tag and first.value != point.value:
            raise BadInput(
                f"{what} {tag!r}: {first.value} and {point.value} both bring one of that name; remove one of their packages"
            )
    if tag in ours:
        module, _, name = ours[tag].partition(":")
        found: type[msgspec.Struct] = getattr(import_module(module), name)
    elif tag in theirs:
        found = theirs[tag].load()
    else:
        raise UnknownName(what, tag, [*ours, *theirs])
    if getattr(getattr(found, "__struct_config__", None), "tag", None) != tag:
        raise BadInput(f"{what} {tag!r}: {found!r} is no struct with that tag")
    return found


def decode(encoded: bytes | str) -> Run:
    """A run as `encode` wrote it."""
    return from_plain(msgspec.json.decode(encoded))


def encode(run: Run) -> bytes:
    return msgspec.json.encode(run, order="deterministic")


def from_plain(plain: dict[str, Any], *, strict: bool = True) -> Run:
    """A run from a dict with its tag under `type`. Raises `BadInput` about a field that the kind does not have."""
    kind = find_kind(str(plain.get("type")))
    found: Run = _convert("run", plain, kind, strict)
    return found


def _convert(what: str, plain: dict[str, Any], kind: type[msgspec.Struct], strict: bool) -> Any:
    def open_field(wanted: type, value: Any) -> Any:
        if wanted is Source and isinstance(value, dict):
            return _convert("workload", value, find_source(str(value.get("type"))), strict)
        return value

    try:
        return msgspec.convert(plain, kind, strict=strict, dec_hook=open_field)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind))
        raise BadInput(
            f"{what} of kind {kind.__struct_config__.tag!r}: {error}; its fields: {known}"
        ) from None
