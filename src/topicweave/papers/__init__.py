"""The papers' experiments, rerun: one module per paper, one function per figure."""

from topicweave.papers.catalogue import STUDIES, find_study
from topicweave.papers.running import StudyResult, run_study
from topicweave.papers.study import Plan, Row, Scale, Study

__all__ = ["STUDIES", "Plan", "Row", "Scale", "Study", "StudyResult", "find_study", "run_study"]
