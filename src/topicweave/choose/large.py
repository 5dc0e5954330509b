"""Subscriptions that are too many for one machine to read: executors draw a sample first, and only that is
read here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from topicweave.choose.channel import Note
from topicweave.choose.running import Engine
from topicweave.data.places import Place

LARGE = 50_000_000
"""Subscriptions; so many take about a minute and a gigabyte to read."""
NODES = 100_000
"""More than any comparison runs; of these the sample of a run is chosen, by common interests."""


def read_on_executors(source: Path, out: Path, engine: Engine, seed: int, note: Note) -> Path:
    """The folder of a sample, if `source` is a workload's folder with very many subscriptions and there is a
    cluster; else itself.
    """
    place = Place(source)
    if not (place / "subscriptions.parquet").exists():
        return source
    from topicweave.pipeline import sample
    from topicweave.pipeline.measuring.api import rows_in
    from topicweave.pipeline.staging import mark_of, table_files

    rows = rows_in({"subscriptions": table_files(place, "subscriptions")})
    hosts = table_files(place, "hosts")
    if rows <= LARGE or (hosts and rows_in({"hosts": hosts}) <= NODES) or not engine.is_cluster:
        return source
    mark = hashlib.sha256(f"{mark_of(place)} {seed} {NODES}".encode()).hexdigest()[:16]
    folder = out / "large" / mark
    if not (folder / "about.json").exists():
        sample.neighbourhood(engine.session, source, folder, nodes=NODES, seed=seed)
    note(
        f"{source}: {rows:,} subscriptions, read on executors; {NODES:,} of the nodes, chosen by common interests, with "
        f"all their topics, are in {folder}"
    )
    return folder
