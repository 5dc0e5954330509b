"""Runs described as plain data, carried out one by one or many at a time, and never twice."""

from topicweave.runs.run import Result, Run, Source, carry_out
from topicweave.runs.runner import Processes, run_all

__all__ = ["Processes", "Result", "Run", "Source", "carry_out", "run_all"]
