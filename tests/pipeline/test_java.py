import os
from pathlib import Path

import pytest

from topicweave.pipeline.java import JavaNotFound, find_java

SAYS = {
    8: 'openjdk version "1.8.0_392"',
    11: 'openjdk version "11.0.21" 2023-10-17',
    17: 'openjdk version "17.0.15" 2025-04-15',
    21: 'java version "21" 2023-09-19 LTS',
}


@pytest.fixture
def machine(tmp_path: Path) -> "Machine":
    return Machine(tmp_path)


class Machine:
    """Folders with Javas in them that only know how to tell their version, on stderr as the real ones do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jvms = folder / "jvms"

    def java(self, version: int, home: str, *, tells_home: bool = True) -> Path:
        executable = self.folder / home / "bin" / "java"
        settings = f"    java.home = {executable.parent.parent}" if tells_home else "Property settings:"
        self.script(executable, f"cat >&2 <<'END'\n{settings}\n{SAYS[version]}\nEND")
        return executable

    def script(self, executable: Path, body: str) -> None:
        executable.parent.mkdir(parents=True)
        executable.write_text(f"#!/bin/sh\n{body}\n")
        executable.chmod(0o755)

    def environ(self, java_home: Path | None = None, *on_path: Path) -> dict[str, str]:
        environ = {"PATH": os.pathsep.join(str(executable.parent) for executable in on_path)}
        return environ if java_home is None else {**environ, "JAVA_HOME": str(java_home)}


@pytest.mark.parametrize("version", [17, 21])
def test_one_that_is_new_enough_is_taken_from_the_path(machine: Machine, version: int) -> None:
    executable = machine.java(version, "some")
    found = find_java(environ=machine.environ(None, executable), jvm_folder=machine.jvms)
    assert (found.version, found.executable, found.home) == (version, executable, machine.folder / "some")


@pytest.mark.parametrize("version", [8, 11])
def test_one_that_is_too_old_is_named_with_its_version(machine: Machine, version: int) -> None:
    executable = machine.java(version, "old")
    with pytest.raises(JavaNotFound, match=rf"Java 17 or newer \(PATH: Java {version}\)"):
        find_java(environ=machine.environ(None, executable), jvm_folder=machine.jvms)


def test_java_home_comes_before_the_path(machine: Machine) -> None:
    home, path = machine.java(21, "home"), machine.java(17, "path")
    environ = machine.environ(home.parent.parent, path)
    assert find_java(environ=environ, jvm_folder=machine.jvms).executable == home


def test_a_java_home_that_is_too_old_gives_way_to_the_path(machine: Machine) -> None:
    home, path = machine.java(11, "home"), machine.java(17, "path")
    environ = machine.environ(home.parent.parent, path)
    assert find_java(environ=environ, jvm_folder=machine.jvms).executable == path


def test_a_java_home_without_a_java_gives_way_to_the_path(machine: Machine) -> None:
    path = machine.java(17, "path")
    environ = machine.environ(machine.folder / "nowhere", path)
    assert find_java(environ=environ, jvm_folder=machine.jvms).executable == path


def test_the_systems_folder_is_the_last_resort(machine: Machine) -> None:
    machine.java(11, "jvms/a-java-11")
    newer = machine.java(17, "jvms/b-java-17")
    assert find_java(environ=machine.environ(), jvm_folder=machine.jvms).executable == newer


def test_the_home_behind_a_link_is_found_even_if_not_told(machine: Machine) -> None:
    real = machine.java(17, "opt/jdk", tells_home=False)
    link = machine.folder / "usr" / "bin" / "java"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    environ = machine.environ(None, link)
    assert find_java(environ=environ, jvm_folder=machine.jvms).home == real.parent.parent


def test_nothing_found_says_where_it_looked_and_what_to_install(machine: Machine) -> None:
    nowhere = machine.folder / "nowhere"
    with pytest.raises(JavaNotFound) as error:
        find_java(environ=machine.environ(nowhere), jvm_folder=machine.jvms)
    text = str(error.value)
    assert f"JAVA_HOME={nowhere}: no working java; PATH: no working java" in text
    assert "apt-get install openjdk-17-jre-headless" in text
    assert "\n" not in text


@pytest.mark.parametrize("body", ["exit 1", "echo no version here", "echo 'version \"17.0.1\"'; exit 1"])
def test_a_java_that_does_not_work_is_none(machine: Machine, body: str) -> None:
    stub = machine.folder / "stub" / "bin" / "java"
    machine.script(stub, body)
    with pytest.raises(JavaNotFound, match="PATH: no working java"):
        find_java(environ=machine.environ(None, stub), jvm_folder=machine.jvms)
