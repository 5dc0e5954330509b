"""What a run is: a value that says what to do, and can do it.

A run kind is a frozen msgspec struct with a tag and a method `run()`; it has exactly the fields that it uses.
Where it needs a workload, one field is a workload source: a frozen, tagged struct with a method `load()`.
Both are registered by their tags (see `registry`), so that a run can be written to a file, sent to another
process or a Spark executor, and named by its contents. Its result is a flat dict of numbers (a few lists),
the same on any machine.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

import msgspec

from topicweave.model.workload import Workload
from topicweave.telemetry.writer import MemoryTelemetry

Result = dict[str, Any]
_KEPT: ContextVar[tuple[str, list[MemoryTelemetry]]] = ContextVar("kept", default=("", []))
"""What a run that is carried out is to be called in its telemetry, and where that is kept; nowhere if it has
no name.
"""


@runtime_checkable
class Source(Protocol):
    """Where a workload comes from.

    A source whose fields do not say what is in the workload (a folder, say) also has a method `contents()`
    that does: it stands in the place of the fields when a result is named. One that reads real data sets
    names them in `data_sets`: what these files hold counts then, too. So may any other struct in a run.
    """

    def load(self) -> Workload: ...


@runtime_checkable
class Run(Protocol):
    """Something to carry out; what a kind does not use it does not have."""

    def run(self) -> Result: ...


class OnSystem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What most kinds share: a system, with parameters of its own, on a workload."""

    system: str
    parameters: dict[str, Any] = {}
    workload: Source
    seed: int = 0

    def given(self, workload: Workload) -> dict[str, Any]:
        """The parameters, with the workload's rates for a system that asks for given ones (Vitis: `rates=given`)."""
        if self.parameters.get("rates") != "given" or "topic_rates" in self.parameters:
            return self.parameters
        rates = dict(zip(workload.topic_ids, workload.rates.tolist(), strict=True))
        return {**self.parameters, "topic_rates": rates}

    def telemetry(self, workload: Workload) -> MemoryTelemetry:
        name, kept = _KEPT.get()
        telemetry = MemoryTelemetry(name or self.system, *workload.names())
        telemetry.keeps_interests = telemetry.keeps_rates = bool(name)
        if name:
            kept.append(telemetry)
        return telemetry


def carry_out(run: Run) -> Result:
    """The run's result."""
    with seldom_collected():
        return run.run()


@contextmanager
def recording(name: str) -> Iterator[list[MemoryTelemetry]]:
    """Keep the telemetry of the run that is carried out in the block, under this name."""
    kept: list[MemoryTelemetry] = []
    token = _KEPT.set((name, kept))
    try:
        yield kept
    finally:
        _KEPT.reset(token)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let Python look for cyclic garbage rarely, and once in the end.

    A large simulation is millions of live objects and next to no cyclic garbage, through all of which Python
    would go again and again: at 3,000 nodes of Vitis that was more than a third of the time. In the end it is
    such garbage itself, and a process that carries out many runs would keep them all.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        gc.collect()


def title(run: Run) -> str:
    """A run in a few words, for people who wait for it."""
    system = getattr(run, "system", "")
    nodes = size(run)
    return f"{system or type(run).__struct_config__.tag}" + (f", {nodes} nodes" if nodes else "")  # type: ignore[attr-defined]  # a run is a struct


def size(run: Run) -> int:
    """How many nodes it has, as far as its source can tell: what takes longest is begun first."""
    return int(getattr(getattr(run, "workload", None), "nodes", 0))
