"""Every command of docs/tour.md, in its order: a wheel in an empty environment, three machines, keys, MQTT, a
machine that fails.

Addresses of the loopback network stand for the machines, a shell in a folder of its own for each. Libraries
come from the environment that runs the tests: the lock's own installation is what `make setup` tries.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from tests.live.together import PROCESS_PATIENCE, kept_port
from tests.live.wheels import BUILD, ROOT, copy_sources, lend_libraries

PAGE = ROOT / "docs" / "tour.md"
MACHINES = {"one": 1, "two": 2, "three": 3}
PORTS = ("7000", "8000", "8001", "1883")

# For machines without Mosquitto's clients: the same words, by paho.
PUBLISH = """#!{python}
import sys
from paho.mqtt import publish
words = sys.argv[1:]
said = dict(zip(words, words[1:]))
publish.single(said["-t"], said["-m"], int(said["-q"]), "-r" in words, said["-h"], int(said["-p"]))
"""
SUBSCRIBE = """#!{python}
import sys
from paho.mqtt import subscribe
words = sys.argv[1:]
said = dict(zip(words, words[1:]))
print(subscribe.simple(said["-t"], int(said["-q"]), hostname=said["-h"], port=int(said["-p"])).payload.decode())
"""


def blocks() -> Iterator[tuple[str, list[str]]]:
    """Who says what: `text` blocks hold what the commands before them print."""
    for kind, place, body in re.findall(r"```(sh|text)(?: (\w+))?\n(.*?)```", PAGE.read_text(), re.DOTALL):
        lines = re.sub(r"\\\n\s*", "", body).splitlines()  # A command may take several.
        yield place if kind == "sh" else "prints", lines


class Machine:
    """A shell in a folder; its own loopback address stands for 127.0.0.1."""

    def __init__(self, folder: Path, number: int, ports: dict[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        self._number = number
        self._ports = ports
        self._started = 0
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("TOPICWEAVE", "PYTHON"))
            },
            "TOPICWEAVE_NODE": f"127.0.0.{number}:{ports['8000']}",
        }
        self._log: IO[str] = (folder / "log").open("w")
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    def here(self, words: str) -> str:
        words = words.replace("127.0.0.1", f"127.0.0.{self._number}").replace("192.0.2.", "127.0.0.")
        return re.sub(r"(?<=:|\s)(" + "|".join(PORTS) + r")\b", lambda port: self._ports[port[1]], words)

    def run(self, line: str) -> str:
        """What a command prints; it must end well. One that goes on is waited for until it says that it listens."""
        line = self.here(line)
        shell = self._shell.stdin
        assert shell is not None
        shell.write(f"{line}\nended=$?; echo; echo ended $ended\n")
        if line.endswith("&"):
            self._started += 1
            shell.write(f"( (tail --pid=$! -f /dev/null; echo gone {self._started}) & )\n")
        shell.flush()
        printed = self._until("ended ", line)
        assert printed[-1] == "ended 0\n", f"{line}: {self._errors()}"
        if line.endswith("&") and not any(said.startswith("{") for said in printed):
            printed += self._until("{", line)
        return "".join(printed)

    def _until(self, beginning: str, line: str) -> list[str]:
        printed: list[str] = []
        for said in self._shell.stdout or ():
            printed.append(said)
            if said.startswith(beginning):
                return printed
            if beginning == "{" and said == f"gone {self._started}\n":
                break
        pytest.fail(f"{line}: it ended: {self._errors()}")

    def _errors(self) -> str:
        return (self.folder / "log").read_text()[-3000:]

    def end(self) -> None:
        """The shell and all that it started: they are a session of their own."""
        if self._shell.poll() is None:
            assert self._shell.stdin
            self._shell.stdin.write("kill $(jobs -p) 2>/dev/null; wait\n")
            self._shell.stdin.close()
            self._shell.wait(PROCESS_PATIENCE)
        if self._shell.stdout:
            self._shell.stdout.close()
        self._log.close()


def stand_ins(folder: Path) -> None:
    """Mosquitto's clients, where there are none."""
    for name, script in {"mosquitto_pub": PUBLISH, "mosquitto_sub": SUBSCRIBE}.items():
        if shutil.which(name) is None:
            path = folder / name
            path.write_text(script.format(python=sys.executable))
            path.chmod(0o755)


def on_the_desk(desk: Machine, line: str, bin_: Path) -> None:
    line = line.replace("python3 -m pip wheel --no-deps", " ".join(BUILD))
    desk.run(line.replace("topicweave keys", f"{bin_}/topicweave keys"))


def install(desk: Machine, line: str) -> None:
    """Into one empty environment, which is all machines' here."""
    if "requirements/node.txt" in line:
        lend_libraries(desk.folder / "tw")
    else:
        line = line.replace("python3 -m venv", f"{sys.executable} -m venv")
        desk.run(line.replace("pip install", "pip install --no-index --quiet"))


@pytest.mark.timeout(1800)
def test_the_tour(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ports = {port: stack.enter_context(kept_port("")).removeprefix(":") for port in PORTS}
        take_the_tour(tmp_path, ports)


def take_the_tour(tmp_path: Path, ports: dict[str, str]) -> None:
    desk = Machine(tmp_path / "desk", 1, ports)
    machines = {name: Machine(tmp_path / name, number, ports) for name, number in MACHINES.items()}
    copy_sources(desk.folder)
    bin_ = desk.folder / "tw" / "bin"
    printed, places = "", set()
    with ExitStack() as stack:
        for machine in (desk, *machines.values()):
            stack.callback(machine.end)
        for place, lines in blocks():
            places.add(place)
            if place != "prints":
                printed = ""
            for line in lines:
                if place == "prints":
                    assert line in printed
                elif place == "desk":
                    on_the_desk(desk, line, bin_)
                elif place == "install":
                    install(desk, line)
                else:
                    printed += machines[place].run(line)
            if place == "install":
                stand_ins(bin_)
                for machine in machines.values():
                    machine.run(f"export PATH={bin_}:$PATH")
                where = machines["one"].run("python -c 'import topicweave; print(topicweave.__file__)'")
                assert str(bin_.parent) in where
            for name, machine in machines.items():
                # The copies that the page asks for.
                if (desk.folder / "keys" / name).exists() and not (machine.folder / "keys").exists():
                    shutil.copytree(desk.folder / "keys" / name, machine.folder / "keys" / name)
    assert places == {"desk", "install", "prints", *MACHINES}
