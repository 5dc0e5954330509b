"""Make `.venv` what requirements/ and pyproject.toml say, see to a Java for Spark, to a Chromium and to Mosquitto's
programs and mqtt.js for the tests.

`make setup` runs this.

Standard library only. What is in place is recorded in a stamp inside .venv, written last: an interrupted set-up
leaves no stamp and is begun anew by the next one.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent

JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
"""Debian's names, in the order tried: a release carries one or the other."""

CHROMIUM_PACKAGES = ("chromium", "chromium-browser")
CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome")

MOSQUITTO_CLIENTS = ("mosquitto-clients",)
MOSQUITTO = "mosquitto"
"""The package of the broker, which also holds `mosquitto_passwd`. Installed, it would start a broker on this machine,
so it is fetched and unpacked, and that one program is taken out of it."""

Stamp = dict[str, str]


class SetupError(Exception):
    """The message is for the user."""


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    java = parser.add_mutually_exclusive_group()
    java.add_argument("--need-java", action="store_true", help="fail where no Java can be had")
    java.add_argument("--java-optional", action="store_true", help="do not try again where none could be had")
    parser.add_argument(
        "--test-tools", action="store_true", help="see to a Chromium, Mosquitto's programs and mqtt.js, too"
    )
    parser.add_argument(
        "--check", action="store_true", help="do nothing; exit with 0 if nothing is to be done"
    )
    options = parser.parse_args(arguments)
    if options.check:
        return 0 if in_place(root, options.java_optional, options.test_tools) else 1
    try:
        with only_one(root):
            install_packages(root)
            install_java(root, options.java_optional)
            if options.test_tools:
                install_chromium(root)
                install_mosquitto(root)
                install_mqtt_js(root)
        if options.need_java and not read_stamp(root).get("java"):
            return 1
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; the next one finishes it", file=sys.stderr)
        return 130
    return 0


# ---- what is in place


def wanted(root: Path) -> Stamp:
    """What the stamp of a finished set-up says; Java and what tests use come on top."""
    return {
        # Neither survives a move or another Python: scripts name the one, packages are built for the other.
        "place": str(root),
        "python": f"{sys.version} {Path(sys.base_prefix).resolve()}",
        "packages": digest(root / "requirements/build.txt", root / "requirements/main.txt"),
        "project": digest(root / "pyproject.toml"),
    }


def in_place(root: Path, java_optional: bool, test_tools: bool) -> bool:
    stamp = read_stamp(root)
    if not wanted(root).items() <= stamp.items():
        return False
    if test_tools and (
        stamp.get("chromium") != find_chromium()
        or stamp.get("mosquitto") != find_mosquitto(root)
        or stamp.get("mqtt_js") != wanted_mqtt_js(root)
    ):
        return False
    java = stamp.get("java")
    return os.access(java, os.X_OK) if java else java_optional and java is not None


def digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def stamp_file(root: Path) -> Path:
    return root / ".venv" / "topicweave-setup.json"


def read_stamp(root: Path) -> Stamp:
    try:
        stamp = json.loads(stamp_file(root).read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(root: Path, stamp: Stamp) -> None:
    """All of it or nothing, whenever we are interrupted."""
    unfinished = stamp_file(root).with_suffix(".new")
    unfinished.write_text(json.dumps(stamp, indent=1) + "\n")
    unfinished.replace(stamp_file(root))


@contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Two set-ups of one folder (two terminals, `make -j`) take turns; the second finds its work done."""
    with (root / "requirements/main.txt").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this folder")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# ---- packages


def install_packages(root: Path) -> None:
    want, have = wanted(root), read_stamp(root)
    venv = root / ".venv"
    if any(have.get(key) != want[key] for key in ("place", "python")):
        say(f"new .venv with Python {sys.version.split()[0]}")
        make_venv(venv)
        have = {}
    if have.get("packages") != want["packages"]:
        stamp_file(root).unlink(missing_ok=True)
        names = locked_names(root)
        say(f"installing {len(names)} locked packages (a minute or two)")
        pip(venv, "install", "--require-hashes", "--no-deps", "-r", str(root / "requirements/build.txt"))
        lock = str(root / "requirements/main.txt")
        pip(venv, "install", "--require-hashes", "--no-build-isolation", "-r", lock)
        # Left over from an earlier lock, such a package would hide that nothing asks for it any more.
        if left_over := installed_names(venv) - names - {"pip", "topicweave"}:
            pip(venv, "uninstall", "--yes", *sorted(left_over))
        have = {key: have[key] for key in ("java", "chromium", "mosquitto", "mqtt_js") if key in have}
    if have.get("project") != want["project"]:
        say("installing topicweave itself, editable")
        pip(venv, "install", "--no-index", "--no-deps", "--no-build-isolation", "--editable", str(root))
    if not want.items() <= have.items():
        write_stamp(root, {**have, **want})


def make_venv(venv: Path) -> None:
    if venv.is_symlink() or venv.is_file():
        venv.unlink()
    elif venv.exists():
        shutil.rmtree(venv)
    answer = run([sys.executable, "-I", "-m", "venv", str(venv)])
    if answer.returncode:
        raise SetupError(
            "Python cannot make a virtual environment; Debian keeps that part of it in a package of its own: "
            "apt-get install python3-venv\n" + answer.stdout.strip()
        )


def locked_names(root: Path) -> set[str]:
    text = "".join((root / f"requirements/{name}.txt").read_text() for name in ("build", "main"))
    return set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))


def installed_names(venv: Path) -> set[str]:
    listed = pip(venv, "list", "--format=freeze", "--exclude-editable")
    return {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in listed.split()}


def pip(venv: Path, command: str, *arguments: str) -> str:
    # Quiet twice: warnings about the machine's own pip settings are no news to whoever set them.
    quiet = [] if command == "list" else ["-qq"]
    answer = run([str(venv / "bin/python"), "-I", "-m", "pip", "--no-input", command, *quiet, *arguments])
    if answer.returncode:
        raise SetupError(f"pip {command} failed\n{answer.stdout.strip()}")
    return answer.stdout


# ---- Java


def install_java(root: Path, optional: bool) -> None:
    stamp = read_stamp(root)
    known = stamp.get("java")
    if (known and os.access(known, os.X_OK)) or (known == "" and optional):
        return
    write_stamp(root, {**stamp, "java": find_or_install_java(root)})


def find_or_install_java(root: Path) -> str:
    """The executable, or nothing and a line to the user: all but the Spark pipeline works without."""
    java = java_module(root)
    try:
        return str(java.find_java().executable)
    except java.JavaNotFound as error:
        missing = str(error)
    said = apt_get_one_of(JAVA_PACKAGES, f"no Java {java.MINIMUM} or newer")
    try:
        return str(java.find_java().executable)
    except java.JavaNotFound:
        print(f"setup: {missing}{said}; without it all but the Spark pipeline works", file=sys.stderr)
        return ""


# ---- Chromium


def install_chromium(root: Path) -> None:
    if read_stamp(root).get("chromium") == (found := find_chromium()):
        return
    if not found:
        said = apt_get_one_of(CHROMIUM_PACKAGES, "no Chromium")
        found = find_chromium()
        if not found:
            print(
                f"setup: no Chromium on the PATH{said}: install one (apt-get install chromium); "
                "without it the tests of pages are skipped",
                file=sys.stderr,
            )
    write_stamp(root, {**read_stamp(root), "chromium": found})


def find_chromium() -> str:
    """The executable, or nothing."""
    return next(filter(None, map(shutil.which, CHROMIUM_COMMANDS)), "")


# ---- Mosquitto


def install_mosquitto(root: Path) -> None:
    if read_stamp(root).get("mosquitto") == find_mosquitto(root):
        return
    said = ""
    if not shutil.which("mosquitto_sub"):
        said = apt_get_one_of(MOSQUITTO_CLIENTS, "no clients of Mosquitto")
    if not find_mosquitto_passwd(root):
        said = said or unpack_mosquitto_passwd(root)
    found = find_mosquitto(root)
    if not all(found.split(os.pathsep)):
        print(
            f"setup: no mosquitto_sub or no mosquitto_passwd on the PATH{said}: install them "
            "(apt-get install mosquitto-clients mosquitto); without them some tests of the MQTT door are skipped",
            file=sys.stderr,
        )
    write_stamp(root, {**read_stamp(root), "mosquitto": found})


def find_mosquitto(root: Path) -> str:
    """The two executables, with a colon between; either may be missing."""
    return os.pathsep.join((shutil.which("mosquitto_sub") or "", find_mosquitto_passwd(root)))


def find_mosquitto_passwd(root: Path) -> str:
    path = os.pathsep.join((str(root / ".venv/bin"), os.environ.get("PATH", os.defpath)))
    return shutil.which("mosquitto_passwd", path=path) or ""


def unpack_mosquitto_passwd(root: Path) -> str:
    """Into .venv, which needs no rights; what apt-get said if it cannot be had, for the user's line."""
    apt_get, dpkg_deb = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if not apt_get or not dpkg_deb:
        return ""
    say("no mosquitto_passwd: taking it out of Debian's mosquitto")
    with tempfile.TemporaryDirectory() as folder:
        fetched = run(["env", "-C", folder, apt_get, "download", "-qq", MOSQUITTO])
        packages = list(Path(folder).glob("*.deb"))
        if fetched.returncode or not packages:
            said = fetched.stdout.strip().splitlines()
            return f" (apt-get: {said[-1]})" if said else ""
        unpacked = run([dpkg_deb, "-x", str(packages[0]), folder])
        program = Path(folder, "usr/bin/mosquitto_passwd")
        if unpacked.returncode or not program.is_file():
            return f" ({MOSQUITTO} cannot be unpacked)"
        shutil.copy(program, root / ".venv/bin/mosquitto_passwd")
    return ""


# ---- mqtt.js


def install_mqtt_js(root: Path) -> None:
    """Into .venv, as its lock says: npm compares each package with its hash, and runs none of their scripts."""
    want = wanted_mqtt_js(root)
    if read_stamp(root).get("mqtt_js") == want:
        return
    npm, folder = shutil.which("npm"), root / ".venv/mqtt-js"
    if npm and want:
        say("fetching mqtt.js")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root / "requirements/mqtt-js", folder)
        quietly = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        answer = run(["env", "-C", str(folder), npm, "ci", *quietly])
        if answer.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            said = answer.stdout.strip().splitlines()
            print(
                f"setup: no mqtt.js{f' (npm: {said[0]})' if said else ''}; without it one test of the MQTT door is skipped",
                file=sys.stderr,
            )
    write_stamp(root, {**read_stamp(root), "mqtt_js": want})


def wanted_mqtt_js(root: Path) -> str:
    """Which one, where there is an npm to fetch it with; else nothing, and the test that needs it says so."""
    lock = root / "requirements/mqtt-js/package-lock.json"
    return digest(lock) if shutil.which("npm") and lock.is_file() else ""


# ---- Debian's packages


def apt_get_one_of(packages: Sequence[str], why: str) -> str:
    """Install the first that can be had, where this user may; what apt-get said if none can, for the user's line."""
    command = may_apt_get()
    if not command:
        return ""
    say(f"{why}: installing Debian's")
    updated = run([*command, "update", "-qq"])
    for package in packages:
        answer = run([*command, "install", "-y", "-qq", "--no-install-recommends", package])
        if answer.returncode == 0:
            return ""
    said = (answer if updated.returncode == 0 else updated).stdout.strip().splitlines()
    return f" (apt-get: {said[-1]})" if said else ""


def may_apt_get() -> list[str]:
    """apt-get as this user may run it without being asked anything, or nothing."""
    apt_get = shutil.which("apt-get")
    if not apt_get:
        return []
    quietly = ["env", "DEBIAN_FRONTEND=noninteractive", apt_get]
    if os.geteuid() == 0:
        return quietly
    if shutil.which("sudo") and run(["sudo", "-n", "true"]).returncode == 0:
        return ["sudo", "-n", *quietly]
    return []


def java_module(root: Path) -> ModuleType:
    """The package's own search for Java, which imports nothing but the standard library."""
    name = "topicweave_java"
    spec = importlib.util.spec_from_file_location(name, root / "src/topicweave/pipeline/java.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


# ---- shared


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SetupError(f"{command[0]}: {error.strerror}") from None


def say(what: str) -> None:
    print(f"setup: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
