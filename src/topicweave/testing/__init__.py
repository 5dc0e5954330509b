"""Tools for testing systems, ours and yours: a virtual network that a test steps through, fault scenarios,
and the invariants to check.
"""

from topicweave.testing.bench import NEWS, SPORT, Bench, pair
from topicweave.testing.campaign import Scenario, Verdict, draw_scenario, run_scenario
from topicweave.testing.network import Happening, Rang, Sent, VirtualNetwork, VirtualWorld
from topicweave.testing.scenario_files import ScenarioFile, read_scenario, shipped_scenarios
from topicweave.testing.seeds import campaign_summary, replay_command, run_campaign

__all__ = [
    "NEWS",
    "SPORT",
    "Bench",
    "Happening",
    "Rang",
    "Scenario",
    "ScenarioFile",
    "Sent",
    "Verdict",
    "VirtualNetwork",
    "VirtualWorld",
    "campaign_summary",
    "draw_scenario",
    "pair",
    "read_scenario",
    "replay_command",
    "run_campaign",
    "run_scenario",
    "shipped_scenarios",
]
