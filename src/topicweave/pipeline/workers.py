"""Are a cluster's workers fit for the work? Asked before it starts, so that the answer is one line and no
stack trace.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from topicweave.errors import TopicweaveError, without_secrets
from topicweave.pipeline.packing import MINOR
from topicweave.pipeline.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS = 3
_ADVICE = "run `topicweave cluster pack` and add the option that it prints (docs/cluster.md)"


def check_python(spark: SparkSession) -> None:
    """Raise, in one line, if executors' Python is another or lacks a library. Nothing to ask of local mode."""
    if is_local(spark.sparkContext.master):
        return

    def look(_numbers: Iterator[int]) -> Iterator[str]:
        from topicweave.pipeline import executor, generate, importing  # noqa: F401 -- all that tasks import

        yield here()

    with described(spark, "check the workers' Python"):
        try:
            ask_all(spark, look)
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
                raise
            raise TopicweaveError(unfit(str(error))) from error


def unfit(text: str) -> str:
    """What a failed look at the workers says, in a line."""
    where = re.search(r"\(([\w.:-]+) executor (\w+)\)", text)
    who = f"worker {where[1]}" if where else "a worker"
    if other := re.search(r"Python in worker has different version:? \(?'?([\d., ]+)", text):
        version = other[1].strip(" ,.").replace(", ", ".")
        return (
            f"{who} runs Python {version}, this is {MINOR}: both must have the same minor version; {_ADVICE}"
        )
    if missing := re.search(r"No module named '?([\w.]+)", text):
        return f"{who}: its Python has no {missing[1]!r}; {_ADVICE}"
    if none := re.search(r"topicweave: (no Python .*)", text):
        return f"{who}: {none[1]}"
    if absent := re.search(r'Cannot run program "([^"]+)"', text):
        return f"{who}: there is no {absent[1]!r}; {_ADVICE}"
    from topicweave.pipeline.causes import cause

    return f"{who}: its Python does not start ({cause(text)}); {_ADVICE}"


def here() -> str:
    """Which executor this is: the machine, and the folder that it works in."""
    return f"{platform.node()}, working in {os.getcwd()}"


def ask_all(spark: SparkSession, look: Any) -> set[str]:
    """What `look` yields on every executor there is: tasks for each core, until all have answered or none is new."""
    context = spark.sparkContext
    tasks = 2 * max(cores(spark), 1)
    answers: set[str] = set()
    for _ in range(_ROUNDS):
        found = set(context.parallelize(range(tasks), tasks).mapPartitions(look).collect())  # a line each
        if found <= answers:
            break
        answers |= found
        if len(answers) >= executors(spark):
            break
    return answers


def executors(spark: SparkSession) -> int:
    """How many there are at the moment, the driver not counted."""
    return max(int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1, 1)


def through_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark Connect server: then it has DataFrames and settings, and no more."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


_CONNECT_CORES = 8
"""How many a server has cannot be asked."""


def cores(spark: SparkSession) -> int:
    """How many tasks the cluster runs at once, with the executors that it has at the moment."""
    if through_connect(spark):
        return _CONNECT_CORES
    context = spark.sparkContext._jsc.sc()
    slots = int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
    # Where executors come when there is work, none may be there yet.
    return slots or int(spark.sparkContext.defaultParallelism)


listeners: list[Callable[[str], None]] = []
"""Whoever wants to hear what a session is at, in the words that its jobs go by."""


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Jobs of the block go by this name on Spark's page."""
    if through_connect(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(what := without_secrets(what))
    for listener in listeners:
        listener(what)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]  # None takes it away
