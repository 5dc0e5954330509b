"""What an operator has: word to the service manager, backups of a running node, settings checked, listed and
completed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import topicweave
from tests.live.together import eventually, local, run
from topicweave.errors import BadInput, TopicweaveError
from topicweave.live import backup
from topicweave.live.backup import PREFIX, Backups, backup_through
from topicweave.live.checking import problems
from topicweave.live.metrics import exposition
from topicweave.live.reference import page, settings_of
from topicweave.live.settings import Limits, Settings, load_settings
from topicweave.testing.full_disk import limit_pages

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "topicweave.cli"]


def test_the_service_manager_hears_of_start_life_reload_and_stop(tmp_path: Path) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(60)
    environment = {
        **os.environ,
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "600000",
        "TOPICWEAVE_INSECURE": "1",
    }

    def heard(word: str) -> str:
        """The next message that has the word."""
        while word not in (said := manager.recv(4096).decode().splitlines()):
            assert any(line.startswith(("STATUS=", "READY=", "RELOADING=")) for line in said)
        return "\n".join(said)

    with manager, subprocess.Popen([*COMMAND, "node"], env=environment, stdout=subprocess.PIPE) as process:
        try:
            heard("READY=1")
            assert "STATUS=ok, 0 nodes connected" in heard("WATCHDOG=1")
            heard("WATCHDOG=1")
            process.send_signal(signal.SIGHUP)
            assert "MONOTONIC_USEC=" in heard("RELOADING=1")
            heard("READY=1")
            process.terminate()
            heard("STOPPING=1")
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = (ROOT / "packaging/topicweave@.service").read_text()
    program = f"{Path(sys.executable).parent}/topicweave"
    here = tmp_path / "topicweave@.service"
    here.write_text(unit.replace("/opt/topicweave/bin/topicweave", program))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True, check=False
    )
    about_us = [line for line in done.stderr.splitlines() if "topicweave" in line]
    assert (done.returncode, about_us) == (0, [])


def test_a_running_node_is_copied_and_the_copy_goes_on_where_it_was(tmp_path: Path) -> None:
    async def test() -> None:
        data, restored = tmp_path / "data", tmp_path / "restored"
        settings = local(name="a", data=str(data), http="127.0.0.1:0", subscribe=("news",))
        async with topicweave.connect(settings) as node:
            assert node.http is not None
            for number in range(20):
                await node.publish("news", b"%d" % number)
            where = str(node.http.address)
            copy = tmp_path / "copy.sqlite"
            events = await asyncio.to_thread(backup_through, where, "", copy)
            assert events == 20
            assert not list(data.glob(f"{PREFIX}*")), "nothing is left beside the data"
            last = await node.publish("news", b"later")
        restored.mkdir()
        shutil.copy(copy, restored / "node.sqlite")
        async with topicweave.connect(local(data=str(restored))) as again:
            assert (again.name, again.subscriptions) == ("a", ["news"])
            receipt = await again.publish("news", b"new")
            # What was published after the copy is not known here: with the same numbers others would take it for that.
            assert receipt.event.epoch > last.event.epoch

    run(test)


def test_a_copy_that_nobody_reads_keeps_nobody_from_the_next_for_long(tmp_path: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(local(data=str(tmp_path))) as node:
            backups = Backups()
            await backups.copy(node.disk, str(tmp_path))
            with pytest.raises(BadInput, match="already"):
                await backups.copy(node.disk, str(tmp_path))
            backups = Backups(patience=0.0)
            await backups.copy(node.disk, str(tmp_path))
            size, chunks = await backups.copy(node.disk, str(tmp_path))
            assert size == len(b"".join([chunk async for chunk in chunks]))

    run(test)


def test_a_folder_that_takes_nothing_is_not_copied_and_the_next_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "DISK_PATIENCE", 0.1)

    async def test() -> None:
        async with topicweave.connect(local(data=str(tmp_path))) as node:
            assert node.disk is not None
            await node.disk.read(limit_pages, node.disk.store, 1)
            while not node.disk.error:  # A few pages may be free.
                await node.publish("filler", bytes(8000), timeout=0.1)
            backups = Backups()
            for _ in range(2):
                async with asyncio.timeout(20):
                    with pytest.raises(BadInput, match=r"takes nothing at the moment: .*full"):
                        await backups.copy(node.disk, str(tmp_path))
            await node.disk.read(limit_pages, node.disk.store, 0)
            await eventually(lambda: node.disk is not None and not node.disk.error)
            size, _ = await backups.copy(node.disk, str(tmp_path))
            assert size

    run(test)


def test_what_cannot_be_copied_is_said(tmp_path: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(local(http="127.0.0.1:0")) as node:
            assert node.http is not None
            with pytest.raises(TopicweaveError, match="no data folder"):
                await asyncio.to_thread(backup_through, str(node.http.address), "", tmp_path / "copy")
        assert list(tmp_path.iterdir()) == []

    run(test)


def test_a_copy_that_is_none_is_not_kept(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        where = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(TopicweaveError, match="no copy"):
            await asyncio.to_thread(backup_through, where, "", tmp_path / "copy")
        server.close()
        assert list(tmp_path.iterdir()) == []

    run(test)


def test_settings_are_checked_without_a_node(tmp_path: Path) -> None:
    good = Settings(insecure=True, data=str(tmp_path / "data"))
    assert problems(good) == []
    assert not (tmp_path / "data").exists(), "nothing is made"
    (tmp_path / "file").write_text("")
    with socket.socket() as taken_port:
        taken_port.bind(("127.0.0.1", 0))
        taken_port.listen()
        port = taken_port.getsockname()[1]
        bad = Settings(
            insecure=True,
            system="nonesuch",
            data=str(tmp_path / "file"),
            http=f"127.0.0.1:{port}",
            mqtt="127.0.0.1:0",
            mqtt_passwords=str(tmp_path / "missing"),
        )
        found = problems(bad)
    assert [line.split()[0] for line in found[1:3]] == ["data", "http"]
    assert "nonesuch" in found[0]
    assert "missing" in found[3]
    assert len(found) == 4
    assert "not a node's keys" in problems(Settings(keys=str(tmp_path)))[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"system": "vitis", "subscribe": ("zone/#",)}, "no patterns in this swarm"),
        ({"patterns": "off", "subscribe": ("zone/#",)}, "turned off"),
        ({"subscribe": ("a/#/b",)}, "last level"),
        ({"subscribe": ("news", "")}, "1 to 1000 characters"),
        ({"subscribe": ("x" * 70_000,)}, "1 to 1000 characters"),
        ({"telemetry": "/proc/nothing"}, "cannot be written to"),
    ],
)
def test_what_a_node_would_refuse_is_found_before_it_starts(given: dict[str, Any], says: str) -> None:
    (problem,) = problems(Settings(insecure=True, **given))
    assert says in problem


def test_a_configuration_is_checked_and_shown_by_command(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text('insecure = true\nsystem = "vitis"\nhttp = "127.0.0.1:0"\ntoken = "hush"\n')

    def topicweave_says(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*COMMAND, "config", *words], capture_output=True, text=True, check=False)

    checked = topicweave_says("check", str(config))
    assert (checked.returncode, checked.stdout) == (0, "a node can start with these settings\n")
    shown = topicweave_says("show", str(config))
    assert json.loads(shown.stdout)["system"] == "vitis"
    assert "hush" not in shown.stdout
    config.write_bytes(b"\x99\xff")
    assert "node.toml: 'utf-8' codec" in topicweave_says("check", str(config)).stderr
    config.write_text("insecure = true\n[limits]\nconnections = 0\n")
    assert (
        topicweave_says("check", str(config)).stderr == "error: limits.connections is 0: say 1 to 1000000\n"
    )
    config.write_text('insecure = true\nsystm = "vitis"\n')
    wrong = topicweave_says("check", str(config))
    assert wrong.returncode == 2
    assert "systm" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


def test_the_page_of_settings_is_that_of_the_code() -> None:
    written = (ROOT / "docs/settings.md").read_text()
    assert written == page(), "run `topicweave config reference > docs/settings.md`"
    for struct in (Settings, Limits):
        names = {one.name for one in settings_of(struct)}
        assert names == set(struct.__struct_fields__)
    assert all(one.meaning for one in settings_of(Settings)), "every setting is explained"


def test_every_setting_can_come_from_a_variable() -> None:
    given = load_settings(environment={"TOPICWEAVE_INSECURE": "1", "TOPICWEAVE_JOIN": "a:1, b:2"})
    assert given.join == ("a:1", "b:2")
    other = load_settings(environment={"TOPICWEAVE_INSECURE": "1", "TOPICWEAVE_DATASETS": "/data"})
    assert other.data == "", "the folder of data sets is no node's"
    client = {"TOPICWEAVE_INSECURE": "1", "TOPICWEAVE_TOKEN": "hush"}
    assert load_settings(environment=client).token == "", "clients send it, too"
    assert load_settings(environment={**client, "TOPICWEAVE_HTTP": "127.0.0.1:0"}).token == "hush"
    with pytest.raises(BadInput, match="did you mean TOPICWEAVE_SYSTEM"):
        load_settings(environment={"TOPICWEAVE_SYSTM": "vitis"})


def test_metrics_explain_themselves_and_the_dashboard_asks_for_nothing_else() -> None:
    async def test() -> None:
        async with topicweave.connect(local()) as node:
            families = list(text_string_to_metric_families(exposition(node).decode()))
        names = {sample.name for family in families for sample in family.samples}
        names.add("topicweave_links")  # has no sample without a link
        assert all(len(family.documentation.split()) > 1 for family in families)
        dashboard = json.loads((ROOT / "packaging/grafana.json").read_text())
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        asked += [one["query"] for one in dashboard["templating"]["list"]]
        wanted = {name for expression in asked for name in re.findall(r"topicweave_\w+", expression)}
        assert wanted
        assert wanted <= names

    run(test)


def test_the_image_is_made_of_what_is_there_and_of_what_is_locked() -> None:
    """No container runtime is needed to see that."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "packaging/Containerfile").read_text())
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}
    assert {word for word, _ in steps} <= known
    stages = [rest.split()[-1] for word, rest in steps if word == "FROM" and " AS " in rest]
    for word, rest in steps:
        if word == "COPY":
            *sources, _ = rest.split()
            if sources[0].startswith("--from="):
                assert sources[0].removeprefix("--from=") in stages
            else:
                assert all((ROOT / source).exists() for source in sources), rest
        if word in ("ENTRYPOINT", "HEALTHCHECK"):
            words = json.loads(rest[rest.index("[") :])
            assert words[0].startswith("/opt/topicweave/bin/")
    installs = [
        part for word, rest in steps if word == "RUN" for part in rest.split("&&") if "pip install" in part
    ]
    assert len(installs) == 3
    locked = {part.split()[-1] for part in installs if "--require-hashes" in part}
    assert locked == {"requirements/build.txt", "requirements/node.txt"}
    (own,) = [part for part in installs if "--require-hashes" not in part]
    assert {"--no-deps", "--no-build-isolation"} <= set(own.split())
    assert own.split()[-1] == "."
    for name in locked:
        for package in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
            if re.match(r"[a-z0-9]", package):
                assert "--hash=sha256:" in package, package
    users = [rest for word, rest in steps if word == "USER"]
    assert users == ["topicweave"], "not root"


@pytest.mark.parametrize(
    ("typed", "offered"), [("topicweave confi", "config"), ("topicweave node --log-l", "--log-level")]
)
def test_the_shell_completes(typed: str, offered: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run(
        [Path(sys.executable).parent / "topicweave"],
        env={**os.environ, "_TOPICWEAVE_COMPLETE": "complete_bash", **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [offered]


def test_the_copy_is_sound_while_events_come(tmp_path: Path) -> None:
    """A copy taken under load is a moment's whole truth: every event up to the last one."""

    async def test() -> None:
        settings = local(data=str(tmp_path / "data"), http="127.0.0.1:0", subscribe=("news",), cache=100_000)
        async with topicweave.connect(settings) as node:
            assert node.http is not None
            going = True

            async def publish() -> None:
                while going:
                    await node.publish("news", b"x" * 1000)

            publishing = asyncio.create_task(publish())
            await asyncio.sleep(0.3)
            copy = tmp_path / "copy.sqlite"
            await asyncio.to_thread(backup_through, str(node.http.address), "", copy)
            going = False
            await publishing
        with sqlite3.connect(copy) as read:
            sequences = [row[0] for row in read.execute("SELECT sequence FROM events ORDER BY sequence")]
        assert sequences == list(range(len(sequences)))
        assert sequences, "it was under load"

    run(test)
