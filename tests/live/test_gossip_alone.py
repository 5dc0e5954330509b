"""Live nodes that run no topic directory: a whole swarm of them, some beside others that do, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topicweave
from tests.live.together import eventually, local, run, total, until_served
from topicweave.blocks.topic_directory.messages import Beat
from topicweave.errors import BadInput
from topicweave.live import LiveNode
from topicweave.live.checking import problems
from topicweave.live.settings import Settings, load_settings
from topicweave.live.swarm import run_swarm
from topicweave.live.world import LiveWorld
from topicweave.model.ids import NodeId
from topicweave.port import Message
from topicweave.systems.omen.node import OMenNode
from topicweave.systems.registry import SYSTEMS

TOPICS = ["news", "weather"]
FAULTS = ("node_errors", "protocol_errors", "events_dropped")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[NodeId, set[str]]:
    """The kinds of messages that each node sends."""
    kinds: dict[NodeId, set[str]] = {}
    send = LiveWorld.send

    def noting(world: LiveWorld, peer: NodeId, message: Message) -> None:
        assert world.node is not None
        kinds.setdefault(world.node.id, set()).add(str(message.__struct_config__.tag))
        send(world, peer, message)

    monkeypatch.setattr(LiveWorld, "send", noting)
    return kinds


def of_directory(kinds: set[str]) -> set[str]:
    return {kind for kind in kinds if kind.startswith("dir-")}


@pytest.mark.parametrize("system", ["spidercast", "omen", "rappel"])
def test_a_swarm_without_directory_serves_popular_topics(system: str, said: dict[NodeId, set[str]]) -> None:
    async def test() -> None:
        async with run_swarm([TOPICS] * 8, local(system=system, membership="gossip"), seed=1) as swarm:
            await until_served(swarm, *TOPICS)
            for counter in FAULTS:
                assert total(swarm, counter) == 0, counter
            assert {node.world.contacts() for node in swarm} == {()}
            assert said.keys() == {node.id for node in swarm}
            assert not any(of_directory(kinds) for kinds in said.values())
            with pytest.raises(BadInput, match='membership = "gossip"'):
                await swarm[0].subscribe("zone/+/door")

    run(test)


@pytest.mark.parametrize("first", ["gossip", "directory"])
def test_nodes_with_and_without_directory_serve_each_other(first: Any, said: dict[NodeId, set[str]]) -> None:
    """Those without are no homes, and nobody's contacts on the ring; whoever of them began the swarm."""
    second: Any = "gossip" if first == "directory" else "directory"

    async def test() -> None:
        async with run_swarm([TOPICS] * 4, local(membership=first), seed=1) as one:
            join = [str(node.address) for node in one]
            async with run_swarm([TOPICS] * 4, local(membership=second), join=join, seed=2) as other:
                swarm = [*one, *other]
                await until_served(swarm, *TOPICS)
                homes = one if first == "directory" else other
                ids = {node.id for node in homes}

                def one_ring() -> bool:
                    return all(set(node.world.contacts()) == ids - {node.id} for node in homes)

                await eventually(one_ring)
                for node in swarm:
                    if node.id not in ids:
                        assert node.world.contacts() == ()
                        assert of_directory(said[node.id]) <= {"dir-release"}
                for counter in FAULTS:
                    assert total(swarm, counter) == 0, counter

    run(test)


def test_coordinators_of_omen_find_others_live() -> None:
    settings = local(system="omen", parameters={"finds": "coordinators"})

    async def test() -> None:
        async with run_swarm([TOPICS] * 8, settings, seed=1) as swarm:
            for node in swarm:
                assert isinstance(node.node, OMenNode)
                assert node.node._finding is None
            await until_served(swarm, *TOPICS)

    run(test)


@pytest.mark.parametrize("finds", ["directory", "coordinators"])
def test_coordinators_of_omen_are_a_variant_in_comparisons(finds: str) -> None:
    wants = {f"node{number}": TOPICS for number in range(8)}
    compared = topicweave.compare(wants, systems=[f"omen:finds={finds}"], seeds=1, events=20, crash=0)
    assert compared.entries[0].measures["hit_ratio"] == 1.0
    swarm = topicweave.simulate(wants, f"omen:finds={finds}")
    swarm.run(until=1.0)
    assert isinstance(omen := swarm.simulation.node(0), OMenNode)
    assert (omen._finding is None) == (finds == "coordinators")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_live_node_understands_the_directory_if_its_system_needs_it(name: str) -> None:
    async def test() -> None:
        node = LiveNode(local(system=name))
        assert (Beat in node.node.message_types) == (SYSTEMS[name].needs == "subscribers")

    run(test)


def test_it_is_said_in_a_file_in_the_environment_and_as_an_option(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('insecure = true\nmembership = "gossip"\n')
    assert load_settings(file, {}).membership == "gossip"
    assert (
        load_settings(None, {"TOPICWEAVE_MEMBERSHIP": "gossip", "TOPICWEAVE_INSECURE": "1"}).membership
        == "gossip"
    )
    assert load_settings(file, {}, {"membership": "directory"}).membership == "directory"
    assert Settings(insecure=True).membership == "directory"
    assert problems(load_settings(file, {})) == []


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"membership": "full"}, "Invalid enum value 'full'"),
        ({"membership": "gossip", "system": "vitis"}, "'vitis' has a membership of its own"),
        ({"membership": "gossip", "patterns": "on"}, "choose one"),
        ({"membership": "gossip", "private_names": True}, "choose one"),
        ({"membership": "gossip", "subscribe": ["zone/#"]}, "this node runs none"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):  # noqa: PT012 - some are seen by the check alone
        found = problems(load_settings(None, {}, {"insecure": True, **settings}))
        raise BadInput("; ".join(found))
