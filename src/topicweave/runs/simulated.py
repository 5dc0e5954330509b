"""What runs in the simulator share."""

from __future__ import annotations

from typing import Any

from topicweave.blocks.membership import Membership
from topicweave.model.workload import Workload
from topicweave.runs.run import OnSystem
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry.writer import MemoryTelemetry


class Simulated(OnSystem, frozen=True, kw_only=True):
    """A run in the simulator."""

    membership: str = "full"

    def simulate(
        self, workload: Workload, count_control: bool = True, **more: Any
    ) -> tuple[Simulation, MemoryTelemetry]:
        """The nodes before anything happens, and what will be written down of them."""
        system = find_system(self.system)
        telemetry = self.telemetry(workload)
        telemetry.counts_control = count_control
        simulation = Simulation(
            workload,
            system,
            system.settings(**self.given(workload)),
            seed=self.seed,
            membership=Membership.parse(self.membership),
            telemetry=telemetry,
            **more,
        )
        return simulation, telemetry
