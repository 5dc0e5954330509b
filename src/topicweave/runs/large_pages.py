"""Large pages of memory for worker processes.

A simulation of a thousand nodes is hundreds of megabytes of small objects that are visited in no order. With pages
of 4 KiB the processor spends a tenth of its time, or more, on looking up where they are. Python's own allocator never
asks for larger pages. The C library's does if told to. Both are told by the environment in which a process starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""Linux's: `madvise` in brackets means that whoever asks gets large pages."""
ASKING = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
SINCE = (2, 35)
"""The glibc that brought this."""


def asking(environment: Mapping[str, str]) -> dict[str, str]:
    """What to add to an environment so that a process asks for large pages. Nothing where there are none, and nothing
    where somebody chose an allocator.
    """
    if not ASKING.keys().isdisjoint(environment) or _glibc() < SINCE:
        return {}
    try:
        offered = "[madvise]" in SWITCH.read_text()
    except OSError:
        return {}
    return dict(ASKING) if offered else {}


@contextmanager
def large_pages() -> Iterator[None]:
    """Processes that are started in the block ask for large pages."""
    added = asking(os.environ)
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _glibc() -> tuple[int, ...]:
    """Its version; (0,) if it is another library."""
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        return tuple(int(part) for part in version.split(".")) if name == "glibc" else (0,)
    except (ValueError, OSError):
        return (0,)
