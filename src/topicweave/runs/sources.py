"""Workload sources that any run may use: generated ones, any of the papers' models, and folders."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from topicweave.model.workload import Workload
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build


class GeneratedWorkload(msgspec.Struct, frozen=True, tag="generated", forbid_unknown_fields=True):
    """A synthetic workload (SpiderCast §3.1)."""

    nodes: int
    topics: int = 100
    popularity: str = "rss"
    min_size: int = 10
    max_size: int = 10
    seed: int = 0

    def load(self) -> Workload:
        return generate(self.nodes, self.topics, self.popularity, self.min_size, self.max_size, self.seed)

    def of_size(self, nodes: int) -> GeneratedWorkload:
        """One of the same kind with so many nodes."""
        return msgspec.structs.replace(self, nodes=nodes)


class ModelWorkload(msgspec.Struct, frozen=True, tag="model", forbid_unknown_fields=True):
    """Any of the papers' models, see `topicweave.workloads.catalogue`."""

    model: str
    parameters: dict[str, Any] = {}
    seed: int = 0

    @property
    def nodes(self) -> int:
        return int(self.parameters.get("nodes", 0))

    def load(self) -> Workload:
        return build(self.model, self.seed, **self.parameters)

    def of_size(self, nodes: int) -> ModelWorkload:
        """One of the same kind with so many nodes."""
        return msgspec.structs.replace(self, parameters={**self.parameters, "nodes": nodes})


class StoredWorkload(msgspec.Struct, frozen=True, tag="stored", forbid_unknown_fields=True):
    """A workload in a folder. Its `fingerprint` is its contents': where it lies does not matter."""

    folder: str
    fingerprint: str = ""

    def load(self) -> Workload:
        return Workload.load(self.folder)

    def contents(self) -> dict[str, str]:
        return {"type": "stored", "fingerprint": self.fingerprint or fingerprint(self.load())}


def fingerprint(workload: Workload) -> str:
    """Names a workload's contents, however its tables are cut into files."""
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(msgspec.json.encode([workload.node_names, workload.topic_names]))
    for array in (workload.offsets, workload.topic_index, workload.rates, workload.churn, workload.hosts):
        digest.update(b"none" if array is None else array.tobytes())
    return digest.hexdigest()
