"""All run kinds and workload sources by tag: where each is found, imported when it is first asked for.

A paper adds its own here; other packages add theirs as entry points of the groups `topicweave.runs` and
`topicweave.sources`, named by tag.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from topicweave.errors import BadInput, UnknownName
from topicweave.runs.run import Run, Source

KINDS = {
    "overlay": "topicweave.runs.overlay:SettledOverlay",
    "churned": "topicweave.runs.churned:ChurnedOverlay",
    "dissemination": "topicweave.runs.dissemination:Dissemination",
    "trial": "topicweave.runs.trial:Trial",
    "live": "topicweave.runs.live_run:LiveRun",
    "patterns": "topicweave.runs.patterned:Patterned",
    "recorded": "topicweave.runs.recorded:RecordedRun",
    "mending": "topicweave.papers.omen.mending:Mended",
    "mending-messages": "topicweave.papers.omen.by_messages:MendedByMessages",
    "vitis-cycles": "topicweave.papers.vitis.runs:CycledDissemination",
    "vitis-churn": "topicweave.papers.vitis.churned:UnderChurn",
    "magnet-trees": "topicweave.papers.magnet.runs:ConvergedTrees",
    "magnet-messages": "topicweave.papers.magnet.settled:SettledTrees",
    "feeds": "topicweave.papers.rappel.feeds:Feeds",
    "interest-locality": "topicweave.papers.rappel.basics:InterestLocality",
    "filter-errors": "topicweave.papers.rappel.basics:FilterErrors",
    "network-check": "topicweave.papers.rappel.basics:NetworkCheck",
    "measured-round-trips": "topicweave.papers.rappel.basics:MeasuredRoundTrips",
}
SOURCES = {
    "generated": "topicweave.runs.sources:GeneratedWorkload",
    "model": "topicweave.runs.sources:ModelWorkload",
    "stored": "topicweave.runs.sources:StoredWorkload",
    "omen-lists": "topicweave.papers.omen.workloads:SyntheticLists",
    "social": "topicweave.papers.omen.workloads:SocialSample",
    "vitis-lists": "topicweave.papers.vitis.lists:CorrelatedLists",
    "followers": "topicweave.papers.vitis.workloads:FollowersSample",
    "vitis-trace": "topicweave.papers.vitis.workloads:TraceLists",
    "other-rates": "topicweave.papers.magnet.rates:OtherRates",
    "topic-sample": "topicweave.papers.magnet.workloads:TopicSample",
    "single-feed": "topicweave.papers.rappel.workloads:SingleFeed",
    "feed-sample": "topicweave.papers.rappel.workloads:FeedSample",
    "community-feeds": "topicweave.papers.rappel.workloads:CommunityFeeds",
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
