"""Synthetic workloads, drawn so that any part of one can be made anywhere and come out the same."""

from topicweave.workloads.popularity import MODELS, popularity
from topicweave.workloads.spidercast import draw_lists, generate

__all__ = ["MODELS", "draw_lists", "generate", "popularity"]
