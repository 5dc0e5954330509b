"""Topicweave: brokerless, topic-based publish/subscribe for nodes that each want many topics.

Example:

    import topicweave

    result = topicweave.compare("my.csv", systems=["spidercast", "vitis"], seeds=3)
    result.table(); result.to_pandas(); result.report("report.html")
    topicweave.advise("my.csv", max_degree=20).node_toml
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from topicweave.choose import advise, compare, read_workload, simulate
    from topicweave.live import connect
    from topicweave.model.workload import Workload
    from topicweave.workloads import generate as generate_workload

__all__ = [
    "Workload",
    "__version__",
    "advise",
    "compare",
    "connect",
    "generate_workload",
    "read_workload",
    "simulate",
]

# Each is imported when it is first used: a simulation needs no sockets, a node no simulator.
_PLACES = {
    "Workload": ("topicweave.model.workload", "Workload"),
    "advise": ("topicweave.choose", "advise"),
    "compare": ("topicweave.choose", "compare"),
    "connect": ("topicweave.live", "connect"),
    "generate_workload": ("topicweave.workloads", "generate"),
    "read_workload": ("topicweave.choose", "read_workload"),
    "simulate": ("topicweave.choose", "simulate"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'topicweave' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
