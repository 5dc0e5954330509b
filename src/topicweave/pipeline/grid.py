"""What to sweep over: a TOML file that names a kind of run, systems, workloads and seeds; every combination is a run.

    name = "coverage"
    kind = "trial"               # of run; "overlay" if not given
    seeds = [0, 1, 2]            # or: replications = 3
    settle = 20.0                # and any other field of the kind
    churn = ["", "600/60"]       # a list holds alternatives, here and below

    [[systems]]
    name = "spidercast"
    k_greedy = [3, 4]

    [[workloads]]
    model = "spidercast"         # see `topicweave workload models`
    nodes = [200, 400]

    [[workloads]]
    folder = "workloads/facebook-1k"

    [[workloads]]
    source = "followers"         # any registered workload source, with its fields
    graph = "epinions"
    nodes = 1000

The seed is the run's and, of a workload that is drawn and has no `seed` of its own here, the workload's: so
replications differ in both. It stands in the results.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.runs.registry import find_kind, find_source, from_plain
from topicweave.runs.run import Run, size
from topicweave.runs.sources import fingerprint
from topicweave.runs.store import key
from topicweave.systems.registry import find_system
from topicweave.workloads.catalogue import find_model

_OWN = {"name", "kind", "seeds", "replications", "systems", "workloads"}
_ELSEWHERE = {"system", "parameters", "workload", "seed"}
"""Fields of a kind that are not given by their names: they come from the tables and the seeds."""


class Cell(NamedTuple):
    """One run of the grid: what is told of it in the results, and what is carried out."""

    id: str
    study: str
    system: str
    workload: str
    parameters: str
    settings: str
    seed: int
    run: Run


def read_grid(path: Path) -> list[Cell]:
    """All runs of a sweep, the large ones first. Raises `BadInput` about what is wrong with the file."""
    try:
        grid = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; give a TOML file that says what to sweep over") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not TOML ({error}); see `topicweave sweep --help`") from None
    tag = str(grid.get("kind", "overlay"))
    fields = {field.name for field in msgspec.structs.fields(find_kind(tag))}
    known = fields - _ELSEWHERE
    unknown = sorted(set(grid) - _OWN - known)
    if unknown:
        raise BadInput(
            f"{path}: unknown key {unknown[0]!r}; runs of kind {tag!r} have {', '.join(sorted(known))}"
        )
    named = [
        one
        for entry in _tables(path, grid, "systems", tag, "system" in fields)
        for one in _systems(path, entry, "parameters" in fields)
    ]
    sources = [
        one
        for entry in _tables(path, grid, "workloads", tag, "workload" in fields)
        for one in _workloads(path, entry)
    ]
    study = str(grid.get("name", path.stem))
    combinations = product(
        list(_alternatives(path, {name: grid[name] for name in grid if name in known})),
        named or [("", {})],
        sources or [("", {})],
        _seeds(path, grid),
    )
    cells: dict[str, Cell] = {}
    for settings, (system, parameters), (workload, source), seed in combinations:
        plain: dict[str, Any] = {"type": tag, **settings}
        plain |= {"seed": seed} if "seed" in fields else {}
        plain |= {"system": system} if system else {}
        plain |= {"parameters": parameters} if parameters else {}
        plain |= {"workload": _seeded(source, seed)} if source else {}
        try:
            run = from_plain(plain, strict=False)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None
        cell = Cell(
            hashlib.sha1(f"{study}\0{key(run)}".encode(), usedforsecurity=False).hexdigest()[:12],
            study,
            system,
            workload,
            json.dumps(parameters, sort_keys=True),
            json.dumps(settings, sort_keys=True),
            seed,
            run,
        )
        cells[cell.id] = cell
    return sorted(cells.values(), key=lambda cell: -size(cell.run))


def _seeded(source: dict[str, Any], seed: int) -> dict[str, Any]:
    """With the run's seed, where the source draws something and has none of its own."""
    has_seed = "seed" in {field.name for field in msgspec.structs.fields(find_source(source["type"]))}
    return {"seed": seed, **source} if has_seed else source


def _tables(path: Path, grid: dict[str, Any], name: str, tag: str, wanted: bool) -> list[dict[str, Any]]:
    entries = grid.get(name, [])
    if not wanted:
        if entries:
            raise BadInput(f"{path}: [[{name}]] in a sweep of {tag!r}, which has none; leave it out")
        return []
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput(f"{path}: no [[{name}]]; name at least one")
    return entries


def _seeds(path: Path, grid: dict[str, Any]) -> list[int]:
    if "seeds" in grid and "replications" in grid:
        raise BadInput(f"{path}: both 'seeds' and 'replications'; give one of them")
    count = grid.get("replications", 1)
    if type(count) is not int or count < 1:
        raise BadInput(f"{path}: replications {count!r}; give a number of 1 or more")
    seeds = grid.get("seeds", list(range(count)))
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int or seed < 0 for seed in seeds):
        raise BadInput(f"{path}: seeds {seeds!r}; give a list of numbers of 0 or more")
    if len(set(seeds)) < len(seeds):
        raise BadInput(f"{path}: a seed stands twice in {seeds!r}; replications need seeds that differ")
    return seeds


def _alternatives(path: Path, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of the values that stand in lists."""
    for name, value in entry.items():
        if value == []:
            raise BadInput(
                f"{path}: {name}: an empty list, so nothing would run; give a value, or leave it out"
            )
    choices = [value if isinstance(value, list) else [value] for value in entry.values()]
    for values in product(*choices):
        yield dict(zip(entry, values, strict=True))


def _systems(
    path: Path, entry: dict[str, Any], with_parameters: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    if "name" not in entry:
        raise BadInput(f"{path}: a [[systems]] without name; see `topicweave systems`")
    for one in _alternatives(path, entry):
        name = str(one.pop("name"))
        if with_parameters:
            find_system(name).settings(**one)  # refuses what the system does not know
        yield name, one


def _workloads(path: Path, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each as a label and a source in plain values."""
    if len(entry.keys() & {"model", "folder", "source"}) != 1:
        raise BadInput(f"{path}: a [[workloads]] needs a model, a folder or a source, and one of them only")
    for one in _alternatives(path, entry):
        kind = next(one[name] for name in ("model", "folder", "source") if name in one)
        rest = (f"{name}={value}" for name, value in one.items() if value is not kind)
        label = " ".join([str(kind), *rest])
        if "folder" in one:
            folder = Path(str(one.pop("folder")))
            if one:
                raise BadInput(
                    f"{path}: a workload's folder has no {next(iter(one))!r}; give the folder alone"
                )
            if not folder.is_dir():
                raise BadInput(f"{path}: workload folder {folder}: not there; make or import it first")
            contents = fingerprint(Workload.load(folder))
            yield label, {"type": "stored", "folder": str(folder.absolute()), "fingerprint": contents}
        elif "source" in one:
            yield label, {"type": str(one.pop("source")), **one}
        else:
            name = str(one.pop("model"))
            model = find_model(name)
            seed = {"seed": one.pop("seed")} if "seed" in one else {}
            model.check(model.settings(**one))
            yield label, {"type": "model", "model": name, "parameters": one, **seed}
