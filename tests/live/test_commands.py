"""The commands, as a shell runs them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import topicweave
from tests.live.together import eventually, local, processes, run, taken


def command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "topicweave.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def test_a_swarm_shows_itself_and_stops_by_itself() -> None:
    done = command("swarm", "--nodes", "5", "--topics", "3", "--topics-per-node", "2", "--seconds", "1.5")
    assert done.returncode == 0, done.stderr
    first, *figures, last = done.stdout.splitlines()
    assert first.count("127.0.0.1:") == 5
    shown = json.loads(figures[-1])
    assert shown["nodes"] == "5"
    # Nodes count all copies of an event, and `noise` is about first ones.
    assert "noise_all" in shown
    assert "noise" not in shown
    assert last == "stopped"


def test_nodes_with_issued_keys_find_each_other(tmp_path: Path) -> None:
    for arguments in (("new-swarm",), ("issue", "alice"), ("issue", "bob")):
        assert command("keys", *arguments, cwd=tmp_path).returncode == 0
    again = command("keys", "issue", "bob", cwd=tmp_path)
    assert (again.returncode, "already" in again.stderr) == (2, True)

    async def test() -> None:
        with processes() as start:
            bob_keys = str(tmp_path / "keys" / "bob")
            options = ("--preset", "local", "--subscribe", "news")
            alice = start("--keys", str(tmp_path / "keys" / "alice"), *options, "--show-events")
            where = await asyncio.to_thread(alice.where)
            assert where["name"] == "alice"
            bob = local(insecure=False, keys=bob_keys, subscribe=("news",), join=(where["listen"],))
            async with topicweave.connect(bob) as node:
                receipt = await node.publish("news", b"hello", wait_for=1, timeout=30)
                assert receipt.accepted == 1
                shown = await asyncio.to_thread(alice.line)
                assert (shown["publisher"], shown["text"]) == ("bob", "hello")
                await eventually(lambda: len(taken(node)) == 1)
            assert await asyncio.to_thread(alice.stop) == 0

    run(test)


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    for arguments, words in (
        (("node",), "needs keys"),
        (("node", "--insecure", "--listen", "192.0.2.1:1"), "loopback only"),
        (("node", "--insecure", "--system", "nonsense"), "unknown system"),
        (("node", "--keys", str(tmp_path)), "keys issue"),
        (("publish", "a", "b", "--node", "127.0.0.1:1"), "start one with"),
        (("subscribe", "a", "--node", "127.0.0.1:1"), "start one with"),
        (("swarm", "--topics", "1", "--topics-per-node", "5"), "--topics-per-node 5: more than --topics 1"),
        (("swarm", "--record", "frames.jsonl"), "needs --dashboard"),
        (("swarm", "--dashboard", "--http"), "choose one"),
        (("swarm", "--dashboard", "--at", "192.0.2.1:1"), "loopback"),
        (("swarm", "--dashboard", "--record", str(tmp_path)), "Is a directory"),
        (("swarm", "--play", str(tmp_path / "nowhere")), "No such file"),
    ):
        done = command(*arguments)
        assert done.returncode == 2, (arguments, done.stdout)
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
