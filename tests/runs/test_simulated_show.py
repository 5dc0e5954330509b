"""A simulated swarm as a recording for the dashboard."""

from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.live.dashboard.recording import Replayed, recorded_frames
from topicweave.live.swarm import draw_interests
from topicweave.runs.simulated_show import record_simulation

INTERESTS = draw_interests(20, 8, 3)


def test_a_recording_of_a_simulation_shows_nodes_links_events_and_figures(tmp_path: Path) -> None:
    file = tmp_path / "simulated.jsonl"
    frames = record_simulation("spidercast", INTERESTS, 10.0, 20.0, 1, file)
    replayed = Replayed()
    hops = []
    for frame in recorded_frames(file):
        replayed.take(frame)
        hops += frame.hops
    shown = replayed.whole()
    assert frames == 100
    assert shown.title == "20 simulated nodes, spidercast (recorded)"
    assert sorted((node.name, node.topics) for node in shown.nodes) == [
        (f"node-{number:04d}", sorted(topics)) for number, topics in enumerate(INTERESTS)
    ]
    assert {node.state for node in shown.nodes} == {"up"}
    assert all(node.links for node in shown.nodes)
    assert set(shown.topics.values()) == {topic for topics in INTERESTS for topic in topics}
    last = shown.figures[-1]
    assert (last["nodes"], last["hit_ratio"], last["topics_apart"]) == (20.0, 1.0, 0.0)
    assert (last["control_messages"] or 0.0) > 0.0
    firsts = [hop for hop in hops if hop.first and hop.wanted]
    assert len({(hop.event, hop.receiver) for hop in firsts}) == len(firsts) > 100


def test_the_same_seed_gives_the_same_recording(tmp_path: Path) -> None:
    made = [tmp_path / name for name in ("one.jsonl", "two.jsonl", "three.jsonl")]
    for file, seed in zip(made, (1, 1, 2), strict=True):
        record_simulation("vitis", INTERESTS, 5.0, 4.0, seed, file)
    one, two, three = (file.read_bytes() for file in made)
    assert one == two != three


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        record_simulation("spidercast", INTERESTS, 5.0, 1.0, 1, tmp_path / "nowhere" / "file")
