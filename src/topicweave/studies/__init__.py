"""The papers' experiments, rerun: one module per paper, one function per figure."""

from topicweave.studies.catalogue import STUDIES, find_study
from topicweave.studies.study import Plan, Row, Scale, Study, StudyResult, run_study

__all__ = ["STUDIES", "Plan", "Row", "Scale", "Study", "StudyResult", "find_study", "run_study"]
