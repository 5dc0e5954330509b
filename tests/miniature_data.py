"""A made-up data folder: every file of the real one, in its format and under its name, small enough to read
in a moment.

The quirks of the real files are in them: comments, empty lists, repeated pairs, times in two places, sessions
that touch, machines that are added twice.
"""

from __future__ import annotations

import gzip
import io
import lzma
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

HOSTS = 24
SLICES = 18
MACHINES = 150


def write_all(folder: Path) -> None:
    """All files of `topicweave.data.formats.REAL`."""
    for name, lines in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = random.Random(f"miniature/{name}")
        text = "".join(f"{line}\n" for line in lines(rng)).encode("ascii")
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else lzma.compress(text))
    _round_trips(folder / "latency" / "planetlab490_rtt_18slices.tar.xz")


def _friends(rng: random.Random, users: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Each pair once: circles of friends, and a few friendships between them."""
    for user in range(users):
        circle = user // 20 * 20
        near = {rng.randrange(circle, min(circle + 20, users)) for _ in range(5)}
        far = {rng.randrange(users) for _ in range(2)}
        yield from ((user + first, other + first) for other in sorted(near | far) if other > user)


def _facebook(rng: random.Random) -> Iterator[str]:
    return (f"{one} {other}" for one, other in _friends(rng, 240))


def _twitter(rng: random.Random) -> Iterator[str]:
    return (f"{one},{other}" for one, other in _friends(rng, 200, first=1))


def _followers(rng: random.Random) -> Iterator[str]:
    yield "follower,followed"
    for user in range(1000, 1150):
        for followed in sorted({int(30 * rng.random() ** 2) for _ in range(4)}):
            yield f"{user},{followed}"


def _epinions(rng: random.Random) -> Iterator[str]:
    yield "# Directed graph: each unordered pair of nodes is saved once"
    yield "# who trusts whom"
    yield "# Nodes: 200"
    yield "# FromNodeId\tToNodeId"
    for user in range(200):
        for trusted in sorted({int(200 * rng.random() ** 2) for _ in range(rng.randint(0, 8))} - {user}):
            yield f"{user}\t{trusted}"


def _livejournal(rng: random.Random) -> Iterator[str]:
    around: dict[int, set[int]] = {user: set() for user in range(200)}
    for one, other in _friends(rng, 190):
        around[one].add(other)
        around[other].add(one)
    for user, friends in around.items():
        yield f"{user}\t{','.join(str(friend) for friend in sorted(friends))}"


def _wikipedia(rng: random.Random) -> Iterator[str]:
    for second in range(0, 4000, 8):
        yield f"{rng.randrange(60)} {int(40 * rng.random() ** 2)} {second}.0"


def _youtube(rng: random.Random) -> Iterator[str]:
    for user in range(1, 120):
        for group in sorted({int(60 * rng.random() ** 2) + 1 for _ in range(3)}):
            yield f"{user}\t{group}"


def _github(rng: random.Random) -> Iterator[str]:
    for user in range(1, 150):
        for repository in sorted({int(90 * rng.random() ** 2) + 1 for _ in range(6)}):
            yield f"{user}:{repository}"


def _machine_events(rng: random.Random) -> Iterator[str]:
    for machine in range(MACHINES):
        yield f"0,{machine},0,platform,0.5,0.25"
    up = set(range(MACHINES))
    for second in range(1, 301):
        machine = rng.randrange(MACHINES)
        if rng.random() < 0.1:
            yield f"{second}000000,{machine},2,platform,0.5,0.5"
        yield f"{second}000000,{machine},{1 if machine in up else 0},platform,0.5,0.25"
        up ^= {machine}
    yield f"301000000,{min(up)},0,platform,,"  # is there already
    yield f"302000000,{min(up)},1,platform,,"
    yield f"302000000,{min(up)},0,platform,,"  # comes back at the same moment


def _sessions(rng: random.Random) -> Iterator[str]:
    for host in range(120):
        times = sorted(rng.randrange(1, 4 * 3600) for _ in range(2 * rng.randint(1, 4)))
        if host % 10 == 1:
            times = []
        if host % 10 == 2:
            times = [0, times[0], times[0], times[-1]]  # two that touch
        yield "\t".join(str(cell) for cell in (host, len(times) // 2, *times))


def _king(rng: random.Random) -> Iterator[str]:
    for host in range(40):
        yield f"{host} {rng.uniform(-80, 80):.4f} {rng.uniform(-80, 80):.4f} h {rng.uniform(0, 9):.4f}"


def _oversim(rng: random.Random) -> Iterator[str]:
    yield "node,x,y,is_root"
    for host in range(50):
        yield f"{host},{rng.uniform(-150, 150):.3f},{rng.uniform(-150, 150):.3f},{int(host == 0)}"


def _as_links(rng: random.Random) -> Iterator[tuple[int, int]]:
    """Ten that all know each other, and stubs with one or two providers among them."""
    yield from ((one, other) for one in range(1, 11) for other in range(1, one))
    for stub in range(11, 151):
        yield from ((provider, stub) for provider in sorted(rng.sample(range(1, 11), rng.randint(1, 2))))


def _caida(rng: random.Random) -> Iterator[str]:
    return (f"{one},{other}" for one, other in _as_links(rng))


def _as_relations(rng: random.Random) -> Iterator[str]:
    return (f"{one}|{other}|{-1 if other > 10 else 0}" for one, other in _as_links(rng))


FILES: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "subscriptions/facebook_combined.txt.gz": _facebook,
    "subscriptions/ego-twitter_undirected.csv.xz": _twitter,
    "subscriptions/twitter_followers_100users.csv.xz": _followers,
    "subscriptions/soc-Epinions1.txt.xz": _epinions,
    "subscriptions/soc-LiveJournal1Adj.txt.xz": _livejournal,
    "subscriptions/wikipedia_edits_jodie.txt.xz": _wikipedia,
    "subscriptions/youtube_groupmemberships.tsv.xz": _youtube,
    "subscriptions/github_watch_2009.txt.xz": _github,
    "churn/google2011_machine_events.csv.gz": _machine_events,
    "churn/gnutella_saroiu_intervals.tsv.xz": _sessions,
    "latency/vivaldi_median_p2psim.syscoord.xz": _king,
    "latency/oversim_2d_coords.csv.xz": _oversim,
    "latency/as-caida20071105_undirected.csv.xz": _caida,
    "latency/as_rel_2013.txt.xz": _as_relations,
}


def _round_trips(path: Path) -> None:
    rng = random.Random("miniature/round trips")
    places = [(rng.uniform(0, 120), rng.uniform(0, 120)) for _ in range(HOSTS)]
    with tarfile.open(path, "w:xz") as archive:
        for number in range(1, SLICES + 1):
            rows = []
            for one, (x, y) in enumerate(places):
                cells = [
                    0.0 if one == other else 5 + ((x - u) ** 2 + (y - v) ** 2) ** 0.5 * rng.uniform(1.0, 1.2)
                    for other, (u, v) in enumerate(places)
                ]
                rows.append("\t".join(f"{cell:.3f}" for cell in cells))
            data = "".join(f"{row}\n" for row in rows).encode("ascii")
            entry = tarfile.TarInfo(f"PlanetLab/PlanetLabData_{number}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
