"""Files and folders by path or URI: on whatever file system.

Paths are this machine's, or those of a disk that all machines mount under one path. URIs (`s3://bucket/w`, `gs://…`,
`hdfs://…`) go through PyArrow's file systems. Nothing is ever renamed from one name that readers look at to another:
a file appears whole under its own name, or not at all. On a disk that takes a hidden file, fsync and a rename; an
object store does it by itself.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from topicweave.errors import BadInput

_URI = re.compile(r"([a-zA-Z][\w+.-]+):/{1,2}([^/?]*)([^?]*)(\?.*)?")


class Place:
    """A file or folder. Small, and the same on every machine it is sent to."""

    def __init__(self, text: str | os.PathLike[str]) -> None:
        name = os.fspath(text)
        uri = _URI.fullmatch(name)
        elsewhere = uri if uri and uri[1] != "file" else None
        self._uri = elsewhere and (elsewhere[1], elsewhere[2], elsewhere[3].rstrip("/"), elsewhere[4] or "")
        self._path = "" if elsewhere else os.path.abspath(uri[3] if uri else name)

    def __str__(self) -> str:
        if self._uri is None:
            return self._path
        scheme, host, path, query = self._uri
        return f"{scheme}://{host}{path}{query}"

    def __reduce__(self) -> tuple[type[Place], tuple[str]]:
        return Place, (str(self),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> Place:
        if self._uri is None:
            return Place(os.path.join(self._path, name))
        scheme, host, path, query = self._uri
        return Place(f"{scheme}://{host}{path}/{name}{query}")

    @property
    def name(self) -> str:
        return (self._path or (self._uri or ("", "", "", ""))[2]).rpartition("/")[2]

    @property
    def local(self) -> Path | None:
        """Its path, if it is on a disk."""
        return Path(self._path) if self._uri is None else None

    def opened(self) -> tuple[Any, str]:
        """PyArrow's file system, and the path in it."""
        if self._uri is None:
            return fs.LocalFileSystem(), self._path
        scheme, host, path, query = self._uri
        system, root = _system(f"{scheme}://{host}{query}")
        return system, f"{root.rstrip('/')}{path}"

    def exists(self) -> bool:
        system, path = self.opened()
        return bool(system.get_file_info(path).type != fs.FileType.NotFound)

    def is_file(self) -> bool:
        system, path = self.opened()
        return bool(system.get_file_info(path).type == fs.FileType.File)

    def size(self) -> int | None:
        """A file's bytes; None if it is not there."""
        system, path = self.opened()
        bytes_: int | None = system.get_file_info(path).size
        return bytes_

    def files(self) -> list[Place]:
        """Itself, if it is a file; of a folder all files in it and below, by path, hidden ones left out."""
        system, path = self.opened()
        if system.get_file_info(path).type != fs.FileType.Directory:
            return [self] if self.exists() else []
        found = system.get_file_info(fs.FileSelector(path, recursive=True))
        inside = (one.path[len(path) :].strip("/") for one in found if one.type == fs.FileType.File)
        return [self / name for name in sorted(inside) if not name.rpartition("/")[2].startswith(".")]

    def mark(self) -> list[Any]:
        """What tells that a file is still the same: its size, and when it was changed."""
        system, path = self.opened()
        info = system.get_file_info(path)
        return [str(self), info.size, info.mtime_ns]

    def marks(self, ending: str) -> list[tuple[str, int, int]]:
        """Of a folder, which files with this ending there are in it and below: path, size, and when changed."""
        system, path = self.opened()
        found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        files = (one for one in found if one.type == fs.FileType.File and one.path.endswith(ending))
        return sorted((one.path[len(path) :].strip("/"), one.size, one.mtime_ns) for one in files)

    def names(self) -> list[str]:
        """What is in a folder, sorted; nothing if it is not there."""
        system, path = self.opened()
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(one.base_name for one in found)

    def read(self) -> bytes | None:
        """A small file's contents; None if it is not there."""
        system, path = self.opened()
        try:
            with system.open_input_stream(path, compression=None) as stream:
                content: bytes = stream.read()
        except FileNotFoundError:
            return None
        return content

    def put(self, content: bytes) -> None:
        """Make a small file, or replace it, all or not at all, to stay when the machine stops."""
        with self.filling() as partial:
            partial.write_bytes(content)

    @contextmanager
    def filling(self) -> Iterator[Path]:
        """A local file to fill; when the block ends without an error it is this file."""
        with self.filling_only() as partial:
            yield partial
            self.take(partial)

    @contextmanager
    def filling_only(self) -> Iterator[Path]:
        """A local file to fill, on a disk one beside this file; gone when the block ends."""
        if self.local is not None:
            self.local.parent.mkdir(parents=True, exist_ok=True)
            partial = self.local.with_name(
                f".{self.name}.{os.uname().nodename}.{os.getpid()}.{threading.get_ident()}"
            )
        else:
            handle, name = tempfile.mkstemp(prefix="topicweave-")
            os.close(handle)
            partial = Path(name)
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)

    def drop_begun(self) -> None:
        """Remove from a folder on a disk what processes of this machine had begun to write when they were killed."""
        folder = self.local
        mine = re.compile(rf"\..+\.{re.escape(os.uname().nodename)}\.(\d+)\.\d+")
        for file in folder.iterdir() if folder is not None and folder.is_dir() else ():
            begun = mine.fullmatch(file.name)
            if begun and not _lives(int(begun[1])):
                file.unlink(missing_ok=True)

    def take(self, partial: Path) -> None:
        """A local file (on a disk: one beside it) becomes this one."""
        if self.local is not None:
            _sync(partial)
            partial.replace(self.local)
            _sync(self.local.parent)
            return
        system, path = self.opened()
        with partial.open("rb") as source, system.open_output_stream(path, compression=None) as target:
            shutil.copyfileobj(source, target, 8 << 20)

    def delete(self) -> None:
        """A file, or a folder with all in it; nothing if it is not there."""
        system, path = self.opened()
        kind = system.get_file_info(path).type
        try:
            if kind == fs.FileType.Directory:
                system.delete_dir(path)
            elif kind != fs.FileType.NotFound:
                system.delete_file(path)
        except FileNotFoundError:
            pass  # somebody else did


@cache
def _system(root: str) -> tuple[Any, str]:
    try:
        system, path = fs.FileSystem.from_uri(root)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{root}: not a place PyArrow can open ({str(error).splitlines()[0]})") from None
    return system, path


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
