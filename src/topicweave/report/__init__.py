"""Reports: the figures and pages of a finished comparison."""

from topicweave.report.comparison import Comparison, Entry, Setting

__all__ = ["Comparison", "Entry", "Setting"]
