"""What executors need and do not have: this project, and the libraries it imports there.

The project goes along with every command, as a zip file in the form of a wheel. The libraries change seldom
and are large: `environment` packs them into an archive, once for each set of versions, which Spark unpacks
beside every executor. It holds the files that are installed here, so executors have the driver's versions to
the letter, and a script that starts the machine's own Python with them. PySpark is left out: a cluster has
its own.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import topicweave
from topicweave.errors import TopicweaveError
from topicweave.pipeline.session import ENVIRONMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
_CLUSTERS_OWN = {"pyspark", "py4j"}
_NOT_RUN = {"tests", "__pycache__", "include", ".."}

_PYTHON = f"""#!/bin/sh
# The machine's own Python {MINOR}, with the libraries beside this file.
here=$(cd "$(dirname "$0")/.." && pwd)
for python in "$TOPICWEAVE_PYTHON" python{MINOR} python3 python; do
    if [ "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = {MINOR} ]; then
        PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/lib" exec "$python" "$@"
    fi
done
echo "topicweave: no Python {MINOR} on $(uname -n); install it there, or set TOPICWEAVE_PYTHON" >&2
exit 127
"""


def cache_folder() -> Path:
    """Where archives are kept for the next command."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "topicweave", "cluster")


def environment(folder: Path) -> Path:
    """An archive of the libraries in `folder`, made unless one of the same versions is there."""
    packages = _libraries()
    path = folder / f"{ENVIRONMENT}{_key(packages)}.tar.gz"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with (
            partial.open("wb") as file,
            # Little compression: it is made here in seconds, and unpacked on every executor.
            gzip.GzipFile("", "wb", 1, file, 0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            _add(archive, "bin/python", _PYTHON.encode(), 0o755)
            for package in packages:
                for name, source in _files(package):
                    _add(archive, f"lib/{name}", source.read_bytes(), 0o644)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _key(packages: list[Distribution]) -> str:
    """Names a set of versions, the Python and the machine that they are built for."""
    versions = sorted(f"{package.name}=={package.version}" for package in packages)
    text = "\n".join([MINOR, platform.system(), platform.machine(), _PYTHON, *versions])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _libraries() -> list[Distribution]:
    """What `topicweave[pipeline]` needs, all the way down, without PySpark."""
    found: dict[str, Distribution] = {}
    waiting = _required("topicweave", {"pipeline"})
    while waiting:
        name = waiting.pop()
        if name in found or name in _CLUSTERS_OWN:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform or Python
        waiting += _required(name, set())
    if "pyarrow" not in found:
        raise TopicweaveError(
            "the pipeline's libraries are not installed; pip install 'topicweave[pipeline]'"
        )
    return [found[name] for name in sorted(found)]


def _required(name: str, extras: set[str]) -> list[str]:
    names = []
    for line in distribution(name).requires or []:
        match = re.match(r"\s*([\w.-]+)", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", line)
        if match and (extra is None or extra[1] in extras):
            names.append(re.sub(r"[-_.]+", "-", match[1]).lower())
    return names


def _files(package: Distribution) -> Iterator[tuple[str, Path]]:
    for file in sorted(package.files or []):
        path = PurePosixPath(file.as_posix())
        source = Path(str(package.locate_file(file)))
        if (
            not _NOT_RUN & set(path.parts)
            and path.suffix not in (".pyi", ".pyx", ".pxd")
            and source.is_file()
        ):
            yield path.as_posix(), source


def project(folder: Path) -> Path:
    """This version of the project's own code as a wheel: pip installs it, and Python imports from it as it is."""
    packed = _wheel()
    # Named by its contents, too: executors keep what they have by name.
    digest = hashlib.sha256(packed).hexdigest()[:12]
    path = folder / f"topicweave-{topicweave.__version__}-0{digest}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_bytes(packed)
        partial.replace(path)
    return path


_SHIPPED: dict[str, tempfile.TemporaryDirectory[str]] = {}
"""By application, where executors that come later still find the project; gone when this process ends."""


def ship_project(spark: SparkSession) -> None:
    """Send the project to every executor of a session, once."""
    application = spark.sparkContext.applicationId
    if application in _SHIPPED:
        return
    folder = tempfile.TemporaryDirectory(prefix="topicweave-")
    wheel = project(Path(folder.name))
    # Spark puts on executors' paths what is called .zip.
    spark.sparkContext.addPyFile(str(wheel.rename(wheel.with_suffix(".zip"))))
    _SHIPPED[application] = folder


def _sources() -> dict[str, bytes]:
    root = Path(topicweave.__file__).parent
    return {
        (Path("topicweave") / file.relative_to(root)).as_posix(): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


@cache
def code_mark() -> str:
    """Changes when any file of the project does."""
    digest = hashlib.sha256()
    for name, content in _sources().items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:16]


def _wheel() -> bytes:
    info = f"topicweave-{topicweave.__version__}.dist-info"
    contents = _sources()
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: topicweave\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    contents[f"{info}/entry_points.txt"] = b"[console_scripts]\ntopicweave = topicweave.cli:main\n"
    contents[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*contents, f"{info}/RECORD"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _metadata() -> str:
    try:
        return distribution("topicweave").read_text("METADATA") or ""
    except PackageNotFoundError:
        return f"Metadata-Version: 2.1\nName: topicweave\nVersion: {topicweave.__version__}\n"
