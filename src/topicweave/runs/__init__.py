"""Runs described as plain data, carried out one by one or many at a time, and never twice."""

from topicweave.runs.experiment import ChurnModel, Experiment, GeneratedWorkload, run_experiment
from topicweave.runs.runner import run_all

__all__ = ["ChurnModel", "Experiment", "GeneratedWorkload", "run_all", "run_experiment"]
