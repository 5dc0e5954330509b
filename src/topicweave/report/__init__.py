"""Figures and pages: what a comparison looks like once it has run."""

from topicweave.report.comparison import Comparison, Entry

__all__ = ["Comparison", "Entry"]
