"""What to sweep over: a TOML file that names systems, workloads and seeds; every combination is a run.

    name = "coverage"
    seeds = [0, 1, 2]            # or: replications = 3
    settle = 20.0                # and other fields of an experiment: events, membership, diameters, tdi

    [[systems]]
    name = "spidercast"
    k_greedy = [3, 4]            # a list holds alternatives

    [[workloads]]
    model = "spidercast"         # see `topicweave workload models`
    nodes = [200, 400]

    [[workloads]]
    folder = "workloads/facebook-1k"

The seed is the run's and, of a synthetic workload without a `seed` of its own, the workload's: so replications
differ in both. It stands in the results.
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
from topicweave.runs.experiment import Experiment, StoredWorkload
from topicweave.runs.model_workload import ModelWorkload
from topicweave.runs.runner import code_fingerprint
from topicweave.systems.registry import find_system
from topicweave.workloads.catalogue import find_model

_FIELDS = ("settle", "events", "membership", "diameters", "tdi")
_KNOWN = {"name", "seeds", "replications", "systems", "workloads", *_FIELDS}


class Run(NamedTuple):
    """One run: what is told of it in the results, and what is carried out."""

    id: str
    study: str
    system: str
    workload: str
    parameters: str
    seed: int
    experiment: Experiment


def read_grid(path: Path) -> list[Run]:
    """All runs of a sweep, the large ones first. Raises `BadInput` about what is wrong with the file."""
    try:
        grid = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; give a TOML file that says what to sweep over") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not TOML ({error}); see `topicweave sweep --help`") from None
    unknown = sorted(set(grid) - _KNOWN)
    if unknown:
        raise BadInput(f"{path}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KNOWN))}")
    systems, workloads = _tables(path, grid, "systems"), _tables(path, grid, "workloads")
    fields = {name: grid[name] for name in _FIELDS if name in grid}
    name = str(grid.get("name", path.stem))
    runs: dict[str, Run] = {}
    for (system, parameters), (label, spec), seed in product(
        [one for entry in systems for one in _systems(path, entry)],
        [one for entry in workloads for one in _workloads(path, entry)],
        _seeds(path, grid),
    ):
        run = _run(path, name, system, parameters, label, spec, seed, fields)
        runs[run.id] = run
    return sorted(runs.values(), key=lambda run: -getattr(run.experiment.workload, "nodes", 0))


def _run(
    path: Path,
    study: str,
    system: str,
    parameters: dict[str, Any],
    label: str,
    spec: dict[str, Any],
    seed: int,
    fields: dict[str, Any],
) -> Run:
    workload = {"seed": seed, **spec} if spec["type"] == "model" else spec
    plain = {"system": system, "parameters": parameters, "workload": workload, "seed": seed, **fields}
    try:
        experiment = msgspec.convert(plain, Experiment, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}; see `topicweave sweep --help`") from None
    digest = hashlib.sha1(code_fingerprint().encode(), usedforsecurity=False)
    digest.update(msgspec.json.encode([study, experiment], order="deterministic"))
    return Run(
        digest.hexdigest()[:20],
        study,
        system,
        label,
        json.dumps(parameters, sort_keys=True),
        seed,
        experiment,
    )


def _tables(path: Path, grid: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = grid.get(key)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput(f"{path}: no [[{key}]]; name at least one")
    return entries


def _seeds(path: Path, grid: dict[str, Any]) -> list[int]:
    if "seeds" in grid and "replications" in grid:
        raise BadInput(f"{path}: both 'seeds' and 'replications'; give one of them")
    seeds = grid.get("seeds", list(range(grid.get("replications", 1) or 0)))
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int or seed < 0 for seed in seeds):
        raise BadInput(f"{path}: seeds {seeds!r}; give a list of numbers of 0 or more")
    if len(set(seeds)) < len(seeds):
        raise BadInput(f"{path}: a seed stands twice in {seeds!r}; replications need seeds that differ")
    return seeds


def _alternatives(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of the values that stand in lists."""
    choices = [value if isinstance(value, list) else [value] for value in entry.values()]
    for values in product(*choices):
        yield dict(zip(entry, values, strict=True))


def _systems(path: Path, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "name" not in entry:
        raise BadInput(f"{path}: a [[systems]] without name; see `topicweave systems`")
    for one in _alternatives(entry):
        name = str(one.pop("name"))
        find_system(name).settings(**one)  # refuses what the system does not know
        yield name, one


def _workloads(path: Path, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if ("model" in entry) == ("folder" in entry):
        raise BadInput(f"{path}: a [[workloads]] needs a model or a folder, and not both")
    for one in _alternatives(entry):
        if "folder" in one:
            folder = Path(str(one.pop("folder")))
            if one:
                raise BadInput(
                    f"{path}: a workload's folder has no {next(iter(one))!r}; give the folder alone"
                )
            if not folder.is_dir():
                raise BadInput(f"{path}: workload folder {folder}: not there; make or import it first")
            spec = StoredWorkload(str(folder.absolute()), _fingerprint(folder))
            yield str(folder), msgspec.to_builtins(spec)
        else:
            name = str(one.pop("model"))
            model = find_model(name)
            label = " ".join([name, *(f"{key}={value}" for key, value in one.items())])
            seed = {"seed": one.pop("seed")} if "seed" in one else {}
            model.check(model.settings(**one))
            spec_of = msgspec.to_builtins(ModelWorkload(name, one))
            del spec_of["seed"]
            yield label, {**spec_of, **seed}


def _fingerprint(folder: Path) -> str:
    """Changes when the folder's tables do."""
    digest = hashlib.sha1(usedforsecurity=False)
    for file in sorted(folder.rglob("*.parquet")):
        if file.is_file():
            digest.update(
                f"{file.relative_to(folder)} {file.stat().st_size} {file.stat().st_mtime_ns}".encode()
            )
    return digest.hexdigest()
