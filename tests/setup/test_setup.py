"""The set-up script's decisions. What would install something is replaced; nothing here needs a network."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import setup

ROOT = Path(setup.__file__).parent.parent


class Checkout:
    """A folder like this project's, and the commands that the script would have run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commands: list[str] = []
        self.failing: dict[str, str] = {}
        self.interrupt_at: str | None = None
        (root / "requirements").mkdir(parents=True)
        (root / "src/topicweave/pipeline").mkdir(parents=True)
        shutil.copy(ROOT / "src/topicweave/pipeline/java.py", root / "src/topicweave/pipeline/java.py")
        (root / "pyproject.toml").write_text("[project]\n")
        for lock, package in ("build", "backend"), ("main", "library"):
            (root / f"requirements/{lock}.txt").write_text(f"{package}==1 \\\n    --hash=sha256:0\n")

    def run(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        line = " ".join(command).replace(f"{self.root}/", "")
        self.commands.append(line)
        if self.interrupt_at and self.interrupt_at in line:
            raise KeyboardInterrupt
        for words, said in self.failing.items():
            if words in line:
                return subprocess.CompletedProcess(command, 1, said)
        if "-m venv" in line:
            (self.root / ".venv/bin").mkdir(parents=True)
        if "download" in line:
            Path(command[2], "mosquitto_1_all.deb").touch()
        if "dpkg-deb -x" in line:
            program = Path(command[3], "usr/bin/mosquitto_passwd")
            program.parent.mkdir(parents=True)
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        listed = "backend==1\nlibrary==1\nLeft_Over==3\n" if "pip --no-input list" in line else ""
        return subprocess.CompletedProcess(command, 0, listed)

    def setup(self, *arguments: str) -> int:
        self.commands.clear()
        return setup.main(arguments, self.root)

    def ran(self, words: str) -> bool:
        return any(words in command for command in self.commands)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """With a Java 17, and an ordinary user's rights."""
    java = tmp_path / "java-17/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    made = Checkout(tmp_path / "checkout")
    monkeypatch.setattr(setup, "run", made.run)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    return made


@pytest.fixture
def without_java(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Checkout:
    """No Java anywhere, no rights, no sudo."""
    find_module = setup.java_module

    def nowhere(root: Path) -> object:
        module = find_module(root)
        monkeypatch.setattr(module, "JVM_FOLDER", tmp_path / "nowhere")
        return module

    monkeypatch.setattr(setup, "java_module", nowhere)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return checkout


def offer(checkout: Checkout, *names: str) -> None:
    """Put programs of these names on the path."""
    folder = checkout.root.parent / "bin"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def test_a_first_one_does_everything_in_order(checkout: Checkout) -> None:
    assert checkout.setup() == 0
    steps = ["-m venv", "requirements/build.txt", "requirements/main.txt", "uninstall", "--editable"]
    assert [next(step for step in steps if step in c) for c in checkout.commands if "list" not in c] == steps
    assert all("--require-hashes" in command for command in checkout.commands if "-r " in command)


def test_what_no_lock_names_is_removed(checkout: Checkout) -> None:
    checkout.setup()
    (uninstall,) = (command for command in checkout.commands if "uninstall" in command)
    assert uninstall.endswith(" --yes left-over")


def test_a_second_one_does_nothing(checkout: Checkout) -> None:
    assert checkout.setup("--check") == 1
    checkout.setup()
    assert checkout.setup("--check") == 0
    assert checkout.setup() == 0
    assert checkout.commands == []


def test_a_changed_lock_installs_again_into_the_same_venv(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.root / "requirements/main.txt").write_text("library==2 \\\n    --hash=sha256:1\n")
    assert checkout.setup("--check") == 1
    assert checkout.setup() == 0
    assert checkout.ran("requirements/main.txt")
    assert not checkout.ran("-m venv")


def test_a_changed_pyproject_installs_only_the_project_again(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.root / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert checkout.setup("--check") == 1
    assert checkout.setup() == 0
    assert len(checkout.commands) == 1
    assert checkout.ran("--editable")


def test_a_moved_checkout_starts_anew(checkout: Checkout) -> None:
    checkout.setup()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    assert checkout.setup("--check") == 1
    checkout.setup()
    assert checkout.ran("-m venv")


@pytest.mark.parametrize("step", ["-m venv", "build.txt", "main.txt", "uninstall", "--editable"])
def test_an_interrupted_one_is_never_taken_for_whole(checkout: Checkout, step: str) -> None:
    checkout.interrupt_at = step
    assert checkout.setup() == 130
    assert checkout.setup("--check") == 1
    checkout.interrupt_at = None
    assert checkout.setup() == 0
    assert checkout.ran("-m venv")
    assert checkout.ran("--editable")
    assert checkout.setup("--check") == 0


def test_an_interrupted_change_of_lock_starts_anew(checkout: Checkout) -> None:
    """pip may have been killed in the middle of a package that it would later take for whole."""
    checkout.setup()
    (checkout.root / "requirements/main.txt").write_text("library==2 \\\n    --hash=sha256:1\n")
    checkout.interrupt_at = "main.txt"
    assert checkout.setup() == 130
    checkout.interrupt_at = None
    checkout.setup()
    assert checkout.ran("-m venv")


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_stamp_is_no_stamp(checkout: Checkout, text: str) -> None:
    checkout.setup()
    setup.stamp_file(checkout.root).write_text(text)
    assert checkout.setup("--check") == 1


def test_a_failing_pip_is_quoted(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    checkout.failing["main.txt"] = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n"
    assert checkout.setup() == 1
    assert (
        capsys.readouterr().err
        == "setup: pip install failed\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n"
    )
    assert checkout.setup("--check") == 1


def test_a_python_without_venv_says_what_to_install(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.failing["-m venv"] = "No module named venv"
    assert checkout.setup() == 1
    assert "apt-get install python3-venv" in capsys.readouterr().err


def test_two_at_once_take_turns(checkout: Checkout) -> None:
    with (
        setup.only_one(checkout.root),
        (checkout.root / "requirements/main.txt").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_without_java_and_rights_one_line_says_so_and_all_else_is_set_up(
    without_java: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert without_java.setup() == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("setup: Spark needs Java 17 or newer (PATH: no working java): install one")
    assert line.endswith("without it all but the Spark pipeline works")
    assert without_java.ran("--editable")


def test_what_can_do_without_java_does_not_ask_again(
    without_java: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    without_java.setup("--java-optional")
    capsys.readouterr()
    assert without_java.setup("--check", "--java-optional") == 0
    assert without_java.setup("--java-optional") == 0
    assert capsys.readouterr().err == ""


def test_what_needs_java_fails_without(without_java: Checkout) -> None:
    without_java.setup()
    assert without_java.setup("--check", "--need-java") == 1
    assert without_java.setup("--need-java") == 1


def test_root_gets_debians_java(
    without_java: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(without_java, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    without_java.failing["openjdk-17"] = "E: Unable to locate package openjdk-17-jre-headless"
    without_java.setup()
    update, older, newer = (command for command in without_java.commands if "apt-get" in command)
    assert update.endswith("update -qq")
    assert older.endswith("openjdk-17-jre-headless")
    assert newer.endswith("openjdk-21-jre-headless")
    assert all(c.startswith("env DEBIAN_FRONTEND=noninteractive") for c in (update, older, newer))


def test_a_failing_apt_get_is_quoted_in_the_line(
    without_java: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(without_java, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    without_java.failing["apt-get"] = "Err:1 no route\nE: Failed to fetch the list"
    assert without_java.setup() == 0
    assert "(apt-get: E: Failed to fetch the list)" in capsys.readouterr().err


def test_sudo_is_used_only_where_it_asks_nothing(
    without_java: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(without_java, "apt-get", "sudo")
    without_java.failing["sudo -n true"] = "sudo: a password is required"
    without_java.setup()
    assert not without_java.ran("apt-get")
    without_java.failing.clear()
    without_java.setup()
    assert without_java.ran("sudo -n env DEBIAN_FRONTEND=noninteractive")


def test_a_browser_is_seen_to_where_asked_for(without_java: Checkout) -> None:
    without_java.setup()
    assert "chromium" not in setup.read_stamp(without_java.root)
    offer(without_java, "chromium")
    assert without_java.setup("--test-tools") == 0
    assert setup.read_stamp(without_java.root)["chromium"] == shutil.which("chromium")


def test_root_gets_debians_chromium(without_java: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(without_java, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    without_java.failing["recommends chromium-browser"] = "not tried where the first can be had"
    without_java.setup("--test-tools")
    assert without_java.ran("install -y -qq --no-install-recommends chromium")
    assert not without_java.ran("chromium-browser")


def test_without_a_browser_one_line_says_so_once(
    without_java: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert without_java.setup("--test-tools") == 0
    _, line, _ = capsys.readouterr().err.splitlines()
    assert line.startswith("setup: no Chromium on the PATH: install one")
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 0
    offer(without_java, "chromium")
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 1


def test_mosquittos_broker_is_never_installed_for_its_one_program(
    without_java: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Debian's package would start a broker."""
    offer(without_java, "apt-get", "dpkg-deb", "chromium")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    without_java.setup("--test-tools")
    assert without_java.ran("--no-install-recommends mosquitto-clients")
    assert not any(
        command.endswith(" mosquitto") for command in without_java.commands if "install" in command
    )
    program = without_java.root / ".venv/bin/mosquitto_passwd"
    assert os.access(program, os.X_OK)
    assert setup.read_stamp(without_java.root)["mosquitto"] == f":{program}"
    offer(without_java, "mosquitto_sub")
    capsys.readouterr()
    without_java.setup("--test-tools")
    assert "mosquitto" not in capsys.readouterr().err
    assert not without_java.commands[-1].endswith("mosquitto")


def test_mosquittos_own_programs_are_taken_where_they_are(without_java: Checkout) -> None:
    offer(without_java, "chromium", "mosquitto_sub", "mosquitto_passwd")
    without_java.setup("--test-tools")
    assert not without_java.ran("download")
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 0


def test_without_mosquitto_one_line_says_so_once(
    without_java: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(without_java, "chromium", "apt-get", "dpkg-deb")
    without_java.failing["download"] = "E: Unable to locate package mosquitto"
    assert without_java.setup("--test-tools") == 0
    _, line = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "setup: no mosquitto_sub or no mosquitto_passwd on the PATH (apt-get: E: Unable to locate package"
    )
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 0


def test_mqtt_js_is_fetched_once_as_its_lock_says(
    without_java: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "requirements/mqtt-js", without_java.root / "requirements/mqtt-js")
    offer(without_java, "chromium", "mosquitto_sub", "mosquitto_passwd")
    without_java.setup("--test-tools")
    assert not without_java.ran("npm"), "there is none"
    offer(without_java, "npm")
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 1
    without_java.setup("--test-tools")
    assert without_java.ran("npm ci --ignore-scripts")
    assert (without_java.root / ".venv/mqtt-js/package-lock.json").is_file()
    without_java.setup("--test-tools")
    assert not without_java.ran("npm")
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 0
    (without_java.root / "requirements/mqtt-js/package-lock.json").write_text("{}")
    without_java.failing["npm ci"] = "npm error code ENOTFOUND\nnpm error more"
    capsys.readouterr()
    assert without_java.setup("--test-tools") == 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "mqtt.js" in one]
    assert line == (
        "setup: no mqtt.js (npm: npm error code ENOTFOUND); without it one test of the MQTT door is skipped"
    )
    assert not (without_java.root / ".venv/mqtt-js").exists()
    assert without_java.setup("--check", "--java-optional", "--test-tools") == 0, "said once"


def test_the_lock_of_mqtt_js_has_a_hash_for_everything_and_no_address() -> None:
    text = (ROOT / "requirements/mqtt-js/package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert "node_modules/mqtt" in packages
    assert all(entry["integrity"].startswith("sha512-") for name, entry in packages.items() if name)
    assert '"resolved"' not in text


def test_a_java_that_went_away_is_looked_for_again(checkout: Checkout) -> None:
    checkout.setup()
    Path(setup.read_stamp(checkout.root)["java"]).unlink()
    assert checkout.setup("--check") == 1


def test_the_stamp_names_all_that_a_venv_depends_on(checkout: Checkout) -> None:
    checkout.setup()
    stamp = json.loads(setup.stamp_file(checkout.root).read_text())
    assert set(stamp) == {"place", "python", "packages", "project", "java"}
    assert sys.version in stamp["python"]


def test_no_python_that_is_new_enough_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/setup.sh", tmp_path / "scripts/setup.sh")
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    answer = subprocess.run(
        ["/bin/sh", tmp_path / "scripts/setup.sh"],
        env={"PATH": os.defpath, "PYTHON": str(old)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    assert "Python 3.11 or newer is needed" in line
