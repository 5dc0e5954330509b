"""Where files are and how they are opened: plain, .gz, .xz, .bz2, .zst, a .zip of one file, members of a .tar.

The real data sets lie in the folder that the environment variable TOPICWEAVE_DATASETS names.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from topicweave.data.places import Place
from topicweave.errors import BadInput

VARIABLE = "TOPICWEAVE_DATASETS"
COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst", ".zip")
BLOCK_BYTES = 4 << 20
LONGEST_LINE = 64 << 20

UNREADABLE = (
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    UnicodeDecodeError,
)
"""What opening and reading a damaged or misnamed file raises."""


def data_file(name: str) -> Path:
    """A file of the real data sets."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise BadInput(f"{name}: set {VARIABLE} to the folder that holds the real data sets")
    path = Path(folder) / name
    if not path.exists():
        raise BadInput(f"{path}: no such file; set {VARIABLE} to the folder that holds the real data sets")
    return path


def source_files(path: Path) -> list[Place]:
    """The file, or the files of a folder by name; hidden ones are not meant. The path may be a URI."""
    place = Place(path)
    if not place.exists():
        raise BadInput(f"{path}: no such file; give the file or folder to import")
    files = place.files()
    if not files:
        raise BadInput(f"{path}: an empty folder; give the file or folder to import")
    return files


def first_line(path: Path | Place) -> str:
    """The first line of a file (of the first member of an archive), for its header."""
    try:
        if is_tar(str(path)):
            with raw(str(path)) as packed, tarfile.open(fileobj=packed) as archive:
                for member in archive:
                    if (stream := archive.extractfile(member)) is not None:
                        return _line_of(stream)
            raise BadInput(f"{path}: an archive without files; give one with the files to import")
        with opened(str(path)) as stream:
            return _line_of(stream)
    except UNREADABLE as error:
        raise unreadable(str(path), error) from None


def _line_of(stream: IO[bytes]) -> str:
    line = stream.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):  # It may be all lines, which end in CRs.
        line = line.split(b"\r", 1)[0]
    return line.decode("utf-8-sig").rstrip("\r\n")


def contents(file: Path) -> list[Any]:
    """What a file holds, wherever it lies: its size and a hash. It is read again when its size or time of
    change is another.
    """
    (_, size, changed), *_ = fingerprint([file])
    return [size, _hash(file, size, changed)]


@cache
def _hash(file: Path, _size: int, _changed: int) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(str(file), error) from None


def fingerprint(files: Iterable[Path | Place]) -> list[list[Any]]:
    """What tells that files are still the same: name, size, time of change."""
    return [Place(str(file)).mark() for file in files]


def unreadable(file: str, error: BaseException) -> BadInput:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return BadInput(
        f"{file}: cannot be read ({reason.splitlines()[0]}); is it whole, and named for its compression?"
    )


def is_tar(file: str) -> bool:
    return re.search(r"\.(tar(\.(gz|xz|bz2))?|tgz)$", Place(file).name) is not None


@contextmanager
def opened(file: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, by path or URI, unpacked as its ending says."""
    name = Place(file).name
    with raw(file) as stream:
        if name.endswith(".gz"):
            with gzip.open(stream, "rb") as unpacked:
                yield io.BufferedReader(unpacked, BLOCK_BYTES)
        elif name.endswith(".xz"):
            with lzma.open(stream, "rb") as unpacked:
                yield unpacked
        elif name.endswith(".bz2"):
            with bz2.open(stream, "rb") as unpacked:
                yield unpacked
        elif name.endswith(".zst"):
            with pa.input_stream(stream, compression="zstd") as unpacked:
                yield io.BufferedReader(unpacked, BLOCK_BYTES)
        elif name.endswith(".zip"):
            with zipfile.ZipFile(stream) as archive, archive.open(_only_member(file, archive)) as member:
                yield member
        else:
            yield stream


@contextmanager
def raw(file: str) -> Iterator[IO[bytes]]:
    """The bytes of a file as they lie there."""
    place = Place(file)
    if place.local is not None:
        with place.local.open("rb") as stream:
            yield stream
    else:
        system, path = place.opened()
        with system.open_input_file(path) as remote:
            yield io.BufferedReader(remote, BLOCK_BYTES)


def _only_member(file: str, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [
        entry for entry in archive.infolist() if not entry.is_dir() and "__MACOSX" not in entry.filename
    ]
    if len(members) != 1:
        raise BadInput(
            f"{file}: holds {len(members)} files, not one; unpack it and give the one that is meant"
        )
    return members[0]
