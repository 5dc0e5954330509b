"""A package of a stranger's with a run kind and a workload source of its own, as pip would install it."""

from pathlib import Path

MODULE = '''
import os
import signal

import msgspec

from topicweave.model.workload import Workload
from topicweave.runs.run import Source


class Line(msgspec.Struct, frozen=True, tag="line"):
    nodes: int

    def load(self):
        return Workload.from_lists({f"n{node}": [f"t{node}", f"t{node + 1}"] for node in range(self.nodes)})


class Count(msgspec.Struct, frozen=True, tag="count", forbid_unknown_fields=True):
    """Needs no system."""

    workload: Source
    seed: int = 0

    def run(self):
        workload = self.workload.load()
        return {"nodes": workload.nodes, "seed": self.seed}


class Deadly(msgspec.Struct, frozen=True, tag="deadly", forbid_unknown_fields=True):
    """The second takes its process with it, as the system does when memory runs out."""

    folder: str
    seed: int = 0

    def run(self):
        if self.seed == 2:
            with open(os.path.join(self.folder, "attempts"), "a") as file:
                file.write(".")
            os.kill(os.getpid(), signal.SIGKILL)
        return {"seed": self.seed}
'''


def a_package(folder: Path) -> Path:
    """A folder for PYTHONPATH."""
    site = folder / "site"
    metadata = site / "strange_runs-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-runs\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[topicweave.runs]\ncount = strange_runs:Count\ndeadly = strange_runs:Deadly\n\n[topicweave.sources]\nline = strange_runs:Line\n"
    )
    (site / "strange_runs.py").write_text(MODULE)
    return site
