"""Synthetic workloads. Any part of a workload can be drawn anywhere, and is the same."""

from topicweave.workloads.popularity import MODELS, popularity
from topicweave.workloads.spidercast import draw_lists, generate

__all__ = ["MODELS", "draw_lists", "generate", "popularity"]
