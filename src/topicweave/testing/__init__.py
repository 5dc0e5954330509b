"""Tools to test systems with, ours and yours: random faults on random workloads, and what must hold afterwards."""

from topicweave.testing.campaign import Scenario, Verdict, draw_scenario, run_campaign, run_scenario

__all__ = ["Scenario", "Verdict", "draw_scenario", "run_campaign", "run_scenario"]
