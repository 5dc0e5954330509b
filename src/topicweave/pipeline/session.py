"""Starting Spark so that it works the same everywhere and leaves the terminal alone."""

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from topicweave.errors import TopicweaveError
from topicweave.pipeline.java import JavaNotFound, find_java

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

VERBOSE = "topicweave.verbose"
"""A setting of ours: whatever its value, Spark's Java side may write to the terminal."""

_LOG4J = Path(__file__).with_name("log4j2.properties")

_ATTEMPTS = 4
_PY4J_LOGGERS = ("py4j.java_gateway", "py4j.clientserver")

_EVERYWHERE = {
    # The same tables whatever the machine's time zone.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Falling back to pickled rows would hide a type that Arrow cannot carry; better to hear of it.
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
}

_LOCAL = {
    # Nobody else has business with an embedded Spark, and a laptop's host name need not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # In local mode the driver's memory is all there is; Spark's own default is 1g.
    "spark.driver.memory": "2g",
    # As many as a hundred million rows need to be sorted within this memory; of little data Spark (adaptively) makes
    # one task again. In one file per task before the shuffle: by default it would be one for each of them.
    "spark.sql.shuffle.partitions": "64",
    "spark.shuffle.sort.bypassMergeThreshold": "1",
}


@contextmanager
def spark_session(
    master: str = "local[*]", app: str = "topicweave", **settings: str
) -> "Iterator[SparkSession]":
    """A Spark session for the length of a `with` block; `settings` are Spark's own (``**{"spark.x": "y"}``).

    Where a session is already running in this process (a notebook, a test run, spark-submit's shell), that one
    is used and left running, with those of the `settings` that can be changed at run time in force until the
    block ends. Otherwise one is started at `master` and stopped afterwards. The memory given to the first one
    (``spark.driver.memory``) stays what it is for later ones in the same process. Nothing is written to the
    terminal, unless ``topicweave.verbose`` is among the settings; what goes wrong in a job is raised as an exception.

        with spark_session("local[2]") as spark:
            spark.range(10).count()
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise TopicweaveError(f"{error}; the pipeline needs: pip install 'topicweave[pipeline]'") from None

    if SparkContext._active_spark_context is not None:  # getActiveSession would only see this thread's
        running = SparkSession.builder.getOrCreate()
        with _changed(running, settings):
            yield running
    else:
        with _started(master, app, settings) as started:
            yield started


@contextmanager
def _started(master: str, app: str, wanted: Mapping[str, str]) -> "Iterator[SparkSession]":
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # Every exception that concerns a query is also logged on stderr, as JSON: twice is once too often.
    for logger in "DataFrameQueryContextLogger", "SQLQueryContextLogger":
        PySparkLogger.getLogger(logger).disabled = True

    local = re.match(r"local(\[|$)", master) is not None
    settings = {
        "spark.master": _retrying(master),
        "spark.app.name": app,
        **_EVERYWHERE,
        **(_LOCAL if local else {}),
        **wanted,
    }
    with _environment(_variables(local)), _quiet(VERBOSE in settings):
        java = _JavaSide.running(settings)
        before = signal.getsignal(signal.SIGINT)
        try:
            spark = SparkSession(SparkContext(conf=_conf(settings), gateway=java.gateway))
        except Py4JJavaError as error:
            reason = str(error.java_exception.getMessage()).splitlines()[0]
            raise TopicweaveError(f"Spark did not start at {master}: {reason}") from error
        with _interruptible(before) as interrupted:
            try:
                yield spark
            except Exception as error:
                if interrupted():
                    raise KeyboardInterrupt from error
                if not isinstance(error, Py4JError | OSError) or java.alive():
                    raise
                raise TopicweaveError(java.ended()) from error
            finally:
                _stop(spark)


@contextmanager
def _interruptible(before: Any) -> Iterator[Callable[[], bool]]:
    """Ctrl-C raises KeyboardInterrupt, also where Py4J makes another error of it: gives a way to ask.

    In place of PySpark's own handler, which cancels jobs over the very connection that it interrupts. (Stopping Spark
    cancels them as well.)
    """
    heard: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: bool(heard)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet(verbose: bool) -> Iterator[None]:
    """Py4J logs what it raises, and Ctrl-C, with a stack trace each; whoever asked for it may have that."""

    def by_others(record: logging.LogRecord) -> bool:
        return "py4j" not in Path(record.pathname).parts

    loggers = [] if verbose else [logging.getLogger(name) for name in (None, *_PY4J_LOGGERS)]
    for logger in loggers:
        logger.addFilter(by_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(by_others)


def _retrying(master: str) -> str:
    """On a cluster a task gets four attempts, in local mode one, unless the URL says otherwise: then one process that the
    system kills takes a whole sweep with it.
    """
    threads = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{threads[1] or 1},{_ATTEMPTS}]" if threads else master


def _conf(settings: Mapping[str, str]) -> "SparkConf":
    from pyspark import SparkConf

    return SparkConf().setAll(list(settings.items()))


class _JavaSide:
    """Spark's Java process and what it writes on stderr.

    Launched here and not by PySpark, because its first lines on stderr come before it has read any logging
    configuration: only another stderr keeps them off the terminal. As PySpark does, we keep it for the life of
    this process: later sessions start faster, and Spark's exceptions ask it for their own text when printed.
    """

    _current: "ClassVar[_JavaSide | None]" = None

    def __init__(self, settings: Mapping[str, str]) -> None:
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway

        self._log = tempfile.TemporaryFile("a+", errors="replace")  # noqa: SIM115 -- kept while Java lives
        self._read = 0
        try:
            self.gateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf=_conf(settings), popen_kwargs={} if VERBOSE in settings else {"stderr": self._log}
            )
        except (PySparkException, OSError) as error:
            raise TopicweaveError(self.ended()) from error

    @classmethod
    def running(cls, settings: Mapping[str, str]) -> "_JavaSide":
        from pyspark import SparkContext

        if cls._current is None or not cls._current.alive():
            SparkContext._gateway = SparkContext._jvm = None  # PySpark would hold on to a dead one
            cls._current = cls(settings)
        # What it complained about so far was another session's affair.
        cls._current._read = cls._current._log.seek(0, os.SEEK_END)
        return cls._current

    def alive(self) -> bool:
        process = self.gateway.proc
        if process is None:  # spark-submit's own: then it is our parent
            return True
        try:
            process.wait(timeout=0.2)  # its socket may be gone a moment before it is
        except subprocess.TimeoutExpired:
            return True
        return False

    def ended(self) -> str:
        """The first line in which it named an error, without the stack trace that follows."""
        self._log.seek(self._read)
        complaints = (line.strip() for line in self._log if re.search(r"Exception|Error|Invalid", line))
        return f"Spark's Java process ended: {next(complaints, 'it was killed, or ran out of memory')}"


def _stop(spark: "SparkSession") -> None:
    from py4j.protocol import Py4JError

    # When the Java side hangs up in the midst of a job, the end that sums up its counters would print a stack trace.
    spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    try:
        with warnings.catch_warnings(action="ignore"):  # PySpark warns of a dead Java side; we raise an error
            spark.stop()
    except (Py4JError, OSError):
        # That was the Java half failing, for want of a Java side; a second call does what is left in Python.
        spark.sparkContext.stop()
        type(spark)._instantiatedSession = type(spark)._activeSession = None


def _variables(local: bool) -> dict[str, str]:
    """The environment that Spark's launcher and workers read."""
    try:
        variables = {"JAVA_HOME": str(find_java().home)}
    except JavaNotFound as error:
        raise TopicweaveError(str(error)) from None
    if local:
        import pyspark

        variables |= {
            # Workers must see the packages that this process sees.
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            # The Spark that came with this PySpark, not whichever one SPARK_HOME was left pointing at.
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    return variables


@contextmanager
def _changed(spark: "SparkSession", wanted: Mapping[str, str]) -> Iterator[None]:
    changeable = {name: value for name, value in wanted.items() if spark.conf.isModifiable(name)}
    before = {name: spark.conf.get(name, None) for name in changeable}
    for name, value in changeable.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old
