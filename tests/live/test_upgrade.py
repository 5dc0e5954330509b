"""A swarm whose nodes are brought to this version one after another, beside the first one that speaks the
lowest wire format of today.
"""

import io
import json
import os
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.live.together import eventually, run
from tests.live.wheels import ROOT, SOURCES, copy_sources, installed
from topicweave.live.authority import issue, new_swarm
from topicweave.live.wire import VERSIONS

pytestmark = [pytest.mark.upgrade, pytest.mark.timeout(600)]

EARLIER = "b4a0883"
"""The commit that nodes are upgraded from."""
NAMES = ("one", "two", "three")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The command line of the earlier version and of this one."""
    made = {}
    for version in ("earlier", "this"):
        folder = tmp_path_factory.mktemp(version)
        sources = folder / "sources"
        sources.mkdir()
        if version == "this":
            copy_sources(sources)
        else:
            packed = subprocess.run(
                ["git", "-C", str(ROOT), "archive", EARLIER, *SOURCES], capture_output=True, check=True
            )
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
                archive.extractall(sources, filter="data")
        made[version] = installed(sources, folder / "environment")
    return made


class Member:
    """One node of the swarm, with a data folder that outlives its process."""

    def __init__(self, folder: Path, system: str, name: str, keys: Path | None = None) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self._system, self._name, self._keys = system, name, keys
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] = (self.folder / "log").open("w")
        self.command, self.listen, self.http = Path(), "127.0.0.1:0", ""

    def start(self, command: Path, join: str, **settings: str) -> None:
        """With another version, at the same address."""
        self.command = command
        who = ["--insecure", "--name", self._name] if self._keys is None else ["--keys", str(self._keys)]
        words = [
            *who,
            "--system",
            self._system,
            "--data",
            str(self.folder / "data"),
        ]
        words += [
            "--preset",
            "local",
            "--listen",
            self.listen,
            "--http",
            "127.0.0.1:0",
            "--subscribe",
            "news",
        ]
        self._process = subprocess.Popen(
            [str(command), "node", *words, *(["--join", join] if join else [])],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **settings},
        )
        assert self._process.stdout
        said = json.loads(self._process.stdout.readline() or "{}")
        assert said, (self.folder / "log").read_text()
        self.listen, self.http = said["listen"], said["http"]

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=30)
            assert self._process.returncode == 0, (self.folder / "log").read_text()
            self._process = None

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._log.close()

    def publish(self, text: str, on: str = "news") -> None:
        waits = ["--wait-for", "1", "--timeout", "20"] if on == "news" else []
        self._run("publish", on, text, *waits)

    def has(self, count: int, of: str = "news") -> list[str]:
        """So many events, the last ones."""
        printed = self._run("subscribe", of, "--last", str(count), "--count", str(count))
        return [json.loads(line)["text"] for line in printed.splitlines()]

    def put_subscription(self, topic: str) -> None:
        request = urllib.request.Request(f"http://{self.http}/subscriptions/{topic}", method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200

    def reasons(self) -> list[str]:
        """Why the node's health is not all it could be."""
        with urllib.request.urlopen(f"http://{self.http}/health", timeout=60) as answer:
            said: list[str] = json.load(answer)["reasons"]
        return said

    def _run(self, *words: str) -> str:
        command = [str(self.command), *words, "--node", self.http]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0, (ended.stderr, (self.folder / "log").read_text()[-2000:])
        return ended.stdout


@pytest.fixture
def members(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Member]]:
    made = [Member(tmp_path, request.param, name) for name in NAMES]
    yield made
    for member in made:
        member.close()


@pytest.fixture
def members_with_keys(tmp_path: Path) -> Iterator[list[Member]]:
    authority = new_swarm(tmp_path / "swarm")
    made = [Member(tmp_path, "spidercast", name, issue(authority, name)) for name in NAMES]
    yield made
    for member in made:
        member.close()


def test_two_versions_are_spoken() -> None:
    assert len(VERSIONS) >= 2


def upgrade(members: list[Member], commands: dict[str, Path], **settings: str) -> list[str]:
    """One after another, with these settings; returns what was said."""
    said: list[str] = []
    for number, member in enumerate(members):
        member.start(commands["earlier"], members[0].listen if number else "")
    everybody_speaks_and_hears(members, said, "earlier")
    for number, member in enumerate(members):
        member.stop()
        other = members[(number + 1) % len(members)]
        missed = f"while {number} is away"
        other.publish(missed)
        said.append(missed)
        member.start(commands["this"], other.listen, **settings)
        everybody_speaks_and_hears(members, said, f"with {number} upgraded")
    return said


def everybody_speaks_and_hears(members: list[Member], said: list[str], when: str) -> None:
    for number, member in enumerate(members):
        text = f"{when} {number}"
        member.publish(text)
        said.append(text)
    for member in members:
        assert sorted(member.has(len(said))) == sorted(said), when


@pytest.mark.parametrize("members", ["spidercast", "vitis"], indirect=True)
def test_nodes_are_upgraded_one_after_another_and_nothing_is_lost(
    members: list[Member], commands: dict[str, Path]
) -> None:
    upgrade(members, commands)


def test_nodes_with_keys_are_upgraded_with_contacts_that_nobody_signed_and_then_do_without(
    members_with_keys: list[Member], commands: dict[str, Path]
) -> None:
    said = upgrade(members_with_keys, commands, TOPICWEAVE_UNPROVEN_CONTACTS="true")
    for number, member in enumerate(members_with_keys):
        member.stop()
        member.start(commands["this"], members_with_keys[number - 1].listen)
    everybody_speaks_and_hears(members_with_keys, said, "signed")


@pytest.mark.parametrize("members", ["spidercast"], indirect=True)
def test_patterns_beside_a_node_that_has_none(members: list[Member], commands: dict[str, Path]) -> None:
    old, two, three = members
    old.start(commands["earlier"], "")
    two.start(commands["this"], old.listen)
    three.start(commands["this"], old.listen)
    two.put_subscription("zone/%23")
    three.publish("before", on="zone/1")
    assert two.has(1, "zone/#") == ["before"]
    assert any("earlier wire format" in reason for reason in two.reasons())
    for member in members:
        member.publish(f"news of {member.listen}")
    for member in members:
        assert sorted(member.has(3)) == sorted(f"news of {other.listen}" for other in members)
    old.stop()
    old.start(commands["this"], two.listen)
    old.publish("after", on="zone/2")
    assert "after" in two.has(2, "zone/#")
    run(lambda: eventually(lambda: two.reasons() == [], "nobody reads over names any more"))
