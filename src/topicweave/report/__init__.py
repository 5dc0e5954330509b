"""Figures and pages: what a comparison looks like once it has run."""

from topicweave.report.comparison import Comparison, Entry, Setting

__all__ = ["Comparison", "Entry", "Setting"]
