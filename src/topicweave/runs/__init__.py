"""Runs: each is plain data that says what to do. A runner carries out many at a time and never repeats a
finished one.
"""

from topicweave.runs.run import Result, Run, Source, carry_out
from topicweave.runs.runner import Processes, run_all

__all__ = ["Processes", "Result", "Run", "Source", "carry_out", "run_all"]
