"""What is told of a failed job is its cause, whichever way Spark wraps it."""

import pytest

from topicweave.pipeline.causes import cause
from topicweave.pipeline.workers import unfit

PYTHON = """An error occurred while calling o87.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage 0.0 (TID 6) (10.0.0.7 executor 1): org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1967, in main
  File "generate.py", line 3, in <module>
ModuleNotFoundError: No module named 'pyarrow'

	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
	at java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
	at org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
ModuleNotFoundError: No module named 'pyarrow'
	at java.base/java.lang.Thread.run(Thread.java:840)
"""
FILES = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 2.0 failed 4 times, most recent failure: Lost task 1.3 in stage 2.0 (TID 9) (10.0.0.8 executor 0): java.io.FileNotFoundException: File file:/shared/w/part-00000.parquet does not exist
	at org.apache.spark.sql.execution.datasources.FileScanRDD.nextIterator(FileScanRDD.scala:129)
	at java.base/java.lang.Thread.run(Thread.java:840)
"""
LOST = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 4) (10.0.0.8 executor 5): ExecutorLostFailure (executor 5 exited caused by one of the running tasks) Reason: Command exited with code 137
Driver stacktrace:
	at java.base/java.lang.Thread.run(Thread.java:840)
"""
BARE = """	at org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
	at java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PYTHON, "ModuleNotFoundError: No module named 'pyarrow'"),
        (FILES, "FileNotFoundException: File file:/shared/w/part-00000.parquet does not exist"),
        (
            LOST,
            "ExecutorLostFailure (executor 5 exited caused by one of the running tasks) "
            "Reason: Command exited with code 137",
        ),
        ("topicweave.errors.BadInput: w: not finished", "BadInput: w: not finished"),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found.",
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found.",
        ),
        (BARE, "no reason given"),
        ("", "no reason given"),
    ],
)
def test_the_cause_is_named_and_never_a_line_of_the_stack(text: str, said: str) -> None:
    assert cause(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PYTHON, "worker 10.0.0.7: its Python has no 'pyarrow'; run `topicweave cluster pack`"),
        (
            "Lost task (TID 6) (w1 executor 1): Python in worker has different version: 3.12 than that in driver: 3.11",
            "worker w1 runs Python 3.12, this is 3.",
        ),
        (
            '(w1 executor 1): java.io.IOException: Cannot run program "./env/bin/python": error=2',
            "worker w1: there is no './env/bin/python'",
        ),
        (
            "(w1 executor 1): topicweave: no Python 3.11 on w1; install it there",
            "worker w1: no Python 3.11 on w1",
        ),
    ],
)
def test_a_worker_that_is_not_fit_is_named_in_a_line(text: str, said: str) -> None:
    assert unfit(text).startswith(said)
    assert "\n" not in unfit(text)
