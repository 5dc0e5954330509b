"""The picture that ticks make: what pages are told, what the figures say, what stays bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.live.dashboard import picture as picture_module
from topicweave.live.dashboard.figures import JUDGED_AFTER, parts
from topicweave.live.dashboard.picture import MOST_HOPS_SHOWN, Picture
from topicweave.live.dashboard.recording import FrameFile, Replayed, recorded_frames
from topicweave.live.dashboard.watch import key_of
from topicweave.live.dashboard.words import Hop, NodeTick, SentEvent
from topicweave.model.ids import ring_id

NEWS = key_of(ring_id("news"))
ANN, BOB, EVE = (key_of(number) for number in (1, 2, 3))


def tick(node: str, name: str, time: float, **more: object) -> NodeTick:
    made = NodeTick(node, name, time)
    for field, value in more.items():
        setattr(made, field, value)
    return made


def three(time: float = 100.0, counts: dict[str, int] | None = None) -> Picture:
    """Ann, Bob and Eve want news; Ann is linked to Bob, Bob to Eve."""
    made = Picture("three", ("kill",), whole_swarm=True)
    for node, name, links in (
        (ANN, "ann", [(BOB, "greedy")]),
        (BOB, "bob", [(ANN, "greedy"), (EVE, "random")]),
        (EVE, "eve", [(BOB, "random")]),
    ):
        made.take(tick(node, name, time, topics=["news"], links=links, counts=counts or {}))
    return made


def hop(
    event: str, sender: str, receiver: str, time: float, *, wanted: bool = True, first: bool = True
) -> Hop:
    return Hop(event, NEWS, sender, receiver, 1, wanted, first, time)


def test_a_page_gets_the_whole_and_then_what_changes() -> None:
    shown = three()
    whole = shown.whole(100.0)
    assert [(node.name, node.state) for node in whole.nodes] == [("ann", "up"), ("bob", "up"), ("eve", "up")]
    assert whole.topics == {NEWS: "news"}
    assert [line.text for line in whole.log] == ["ann joined", "bob joined", "eve joined"]
    assert len(shown.frame(100.1).nodes) == 3
    assert shown.frame(100.2).nodes == []
    shown.take(tick(BOB, "bob", 100.3, links=[(ANN, "greedy")]))
    assert [node.name for node in shown.frame(100.4).nodes] == ["bob"]


def test_figures_count_what_happened_in_whatever_order_it_is_told() -> None:
    shown = three()
    shown.frame(100.0)
    # Eve tells of the event before Ann, its publisher, does.
    shown.take(
        tick(EVE, "eve", 100.3, hops=[hop("e", BOB, EVE, 100.2), hop("e", ANN, EVE, 100.2, first=False)])
    )
    shown.take(
        tick(
            ANN, "ann", 100.3, sent=[SentEvent("e", NEWS, 100.1)], counts={"publishes": 1}, control=(30, 600)
        )
    )
    figures = shown.frame(101.0).figures[0]
    assert figures["latency_p50"] == pytest.approx(0.1)
    assert (figures["published"], figures["duplicates"], figures["noise"]) == (1.0, 1.0, 0.0)
    assert (figures["control_messages"], figures["control_bytes"]) == (10.0, 200.0)
    assert (figures["hit_ratio"], figures["parts"], figures["topics_apart"]) == (None, 1.0, 0.0)
    for node, name in ((ANN, "ann"), (BOB, "bob"), (EVE, "eve")):
        shown.take(tick(node, name, 101.0 + JUDGED_AFTER))
    assert shown.frame(101.0 + JUDGED_AFTER).figures[0]["hit_ratio"] == 0.5, "Eve got it, Bob did not"


def test_noise_counts_first_copies_as_measures_do() -> None:
    """Eve and Bob want the topic, Ann does not and gets three copies."""
    shown = three()
    shown.frame(100.0)
    shown.take(tick(EVE, "eve", 100.3, hops=[hop("e", ANN, EVE, 100.2)]))
    shown.take(tick(BOB, "bob", 100.3, hops=[hop("e", ANN, BOB, 100.2)]))
    copies = [hop("e", BOB, ANN, 100.2, wanted=False, first=number == 0) for number in range(3)]
    shown.take(tick(ANN, "ann", 100.3, hops=copies))
    figures = shown.frame(101.0).figures[0]
    assert (figures["noise"], figures["relays"], figures["duplicates"]) == (1 / 3, 1.0, 1.0)


def test_what_was_left_out_is_not_taken_for_missed() -> None:
    shown = three()
    shown.frame(100.0)
    shown.take(tick(ANN, "ann", 100.1, sent=[SentEvent("e", NEWS, 100.1)]))
    shown.take(tick(BOB, "bob", 100.2, left_out=1))
    for node, name in ((ANN, "ann"), (BOB, "bob"), (EVE, "eve")):
        shown.take(tick(node, name, 105.5))
    frame = shown.frame(105.5)
    assert (frame.figures[0]["hit_ratio"], frame.left_out) == (None, 1)


def test_parts_and_their_repair_are_in_the_log() -> None:
    shown = three()
    shown.frame(100.0)
    shown.take(tick(BOB, "bob", 100.5, links=[(ANN, "greedy")]))
    shown.take(tick(EVE, "eve", 100.5, links=[]))
    assert shown.frame(101.0).figures[0]["topics_apart"] == 1.0
    shown.take(tick(EVE, "eve", 102.0, links=[(ANN, "greedy")]))
    shown.take(tick(ANN, "ann", 102.0))
    shown.take(tick(BOB, "bob", 102.0))
    shown.frame(103.0)
    told = [(line.kind, line.text) for line in shown.log][3:]
    assert told == [
        ("loss", "1 topics are apart: their subscribers are not all linked"),
        ("repair", "all topics are in one part again after 2 s"),
    ]


def test_losses_refusals_and_silence_are_in_the_log() -> None:
    shown = three(counts={"links_lost": 7, "refused_events": 1})
    shown.take(tick(ANN, "ann", 100.5, counts={"links_lost": 9}))
    shown.take(tick(BOB, "bob", 100.5, counts={"refused_events": 2}))
    states = {node.name: node.state for node in shown.frame(102.1).nodes}
    assert states["eve"] == "silent"
    shown.take(tick(EVE, "eve", 102.2))
    shown.set_state(EVE, "killed")
    shown.take(tick(EVE, "eve", 102.4, counts={"links_lost": 0}))
    assert [line.text for line in shown.log][3:] == [
        "ann: 2 connections lost",
        "bob: 1 events refused",
        "eve is silent",
        "eve is heard again",
        "eve is back",
    ]


def test_one_node_alone_knows_neither_hit_ratio_nor_latency() -> None:
    shown = Picture("bob")
    shown.take(tick(BOB, "bob", 100.0, topics=["news"], links=[(ANN, "greedy")], names={ANN: "ann"}))
    states = {node.name: node.state for node in shown.frame(100.0).nodes}
    assert states == {"bob": "up", "ann": "seen"}
    figures = shown.frame(101.0).figures[0]
    assert (figures["hit_ratio"], figures["latency_p50"], "parts" in figures) == (None, None, False)


def test_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_module, "MOST_NODES", 3)
    shown = three()
    shown.take(tick(key_of(9), "one too many", 100.0))
    assert sorted(node.name for node in shown.frame(100.0).nodes) == ["ann", "bob", "eve"]
    for number in range(3):
        hops = [hop(f"{number} {one}", ANN, BOB, 100.0) for one in range(MOST_HOPS_SHOWN)]
        shown.take(tick(BOB, "bob", 100.0 + number, hops=hops))
    frame = shown.frame(102.5)
    assert (len(frame.hops), frame.left_out) == (MOST_HOPS_SHOWN, 2 * MOST_HOPS_SHOWN)
    for second in range(2000):
        shown.take(tick(ANN, "ann", 103.0 + second, counts={"links_lost": second}))
        shown.frame(103.0 + second)
    assert (len(shown.series), len(shown.log)) == (600, 500)


def test_parts_of_a_chain_with_a_hole() -> None:
    chain = {str(number): [str(number + 1)] for number in range(9)}
    everybody = set(map(str, range(10)))
    assert parts(everybody, chain) == 1
    assert parts(everybody - {"4", "7"}, chain) == 3


def test_a_recording_tells_the_same_again(tmp_path: Path) -> None:
    shown = three()
    file = tmp_path / "three.jsonl"
    with FrameFile(file, Picture("three").whole(99.0)) as recording:
        recording.add(shown.frame(100.0))
        shown.take(tick(BOB, "bob", 100.5, hops=[hop("e", ANN, BOB, 100.4)]))
        recording.add(shown.frame(101.0))
    file.write_bytes(file.read_bytes() + b'{"time": 10')  # The process was killed while it wrote.
    again = Replayed()
    for frame in recorded_frames(file):
        again.take(frame)
    whole, original = again.whole(), shown.whole(101.0)
    assert (whole.nodes, whole.topics, whole.log) == (original.nodes, original.topics, original.log)
    assert (len(whole.figures), whole.title) == (1, "three (recorded)")


@pytest.mark.parametrize("text", ["", "hello\n", '{"time": 1.0}\n'])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(text)
    with pytest.raises(BadInput, match="recording"):
        list(recorded_frames(file))
    with pytest.raises(BadInput, match="No such file"):
        list(recorded_frames(tmp_path / "nowhere"))
