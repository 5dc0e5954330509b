"""Which Java Spark will run on.

Standard library only and importing nothing of ours: `scripts/setup.py` loads this file by its path, before
anything is installed, so that the set-up and a Spark session always agree on which Java there is.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

JVM_FOLDER = Path("/usr/lib/jvm")
"""Where Linux distributions keep their Javas, also those that are not the default one."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # "1.8.0_392" was Java 8; since 9 it is "17.0.15"
_HOME = re.compile(r"^\s*java\.home\s*=\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Java:
    """A Java runtime: what `JAVA_HOME` should be for it, its executable, its major version."""

    home: Path
    executable: Path
    version: int


class JavaNotFound(Exception):
    """No Java that is new enough; the message says what was looked at and what to install."""


def find_java(
    minimum: int = MINIMUM, environ: Mapping[str, str] | None = None, jvm_folder: Path | None = None
) -> Java:
    """The first Java of at least `minimum` among `JAVA_HOME`, `PATH` and the system's folder of Javas.

    A `JAVA_HOME` that is wrong or too old is passed over rather than obeyed: what counts is that Spark runs.
    """
    looked_at: list[str] = []
    places = _candidates(os.environ if environ is None else environ, jvm_folder or JVM_FOLDER)
    for place, executable in places:
        java = _ask(executable) if executable else None
        if java and java.version >= minimum:
            return java
        looked_at.append(f"{place}: {f'Java {java.version}' if java else 'no working java'}")
    raise JavaNotFound(
        f"Spark needs Java {minimum} or newer ({'; '.join(looked_at)}): install one "
        f"(Debian, Ubuntu: apt-get install openjdk-{minimum}-jre-headless) or set JAVA_HOME"
    )


def _candidates(environ: Mapping[str, str], jvm_folder: Path) -> Iterator[tuple[str, Path | None]]:
    if home := environ.get("JAVA_HOME"):
        executable = Path(home, "bin", "java")
        yield f"JAVA_HOME={home}", executable if executable.is_file() else None
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    yield "PATH", Path(found) if found else None
    for executable in sorted(jvm_folder.glob("*/bin/java")):
        yield str(executable.parent.parent), executable


def _ask(executable: Path) -> Java | None:
    """What this executable says of itself.

    `java.home` is asked for because the file found may be a link or another tool's wrapper script.
    """
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=60,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(answer)
    if not version:
        return None
    home = _HOME.search(answer)
    return Java(
        home=Path(home[1]) if home else executable.resolve().parent.parent,
        executable=executable,
        version=int(version[1]),
    )
