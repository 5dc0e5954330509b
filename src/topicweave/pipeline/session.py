"""Starting Spark so that it works the same everywhere and leaves the terminal alone.

What a user has set counts before what we would choose: first the settings given here (`--master`, `--conf`), then
those of spark-submit or of spark-defaults.conf, then ours. Only the time zone and how rows cross to Python are ours
whatever stands in spark-defaults.conf, because tables depend on them.
"""

import atexit
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

from topicweave.errors import BadInput, TopicweaveError
from topicweave.pipeline.java import JavaNotFound, find_java

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

VERBOSE = "topicweave.verbose"
"""A setting of ours: whatever its value, Spark's Java side may write to the terminal."""

LIGHT = "topicweave.light"
"""A setting of ours, for work that Python's side does: whatever its value, Java in local mode compiles
quickly rather than well. Its better compiler takes 12 of 53 processor seconds to measure five million
deliveries, and gains nothing with a hundred million. Where Java itself reads, sorts and joins rows, it pays.
"""

ENVIRONMENT = "topicweave-env-"
"""How the names of archives begin that bring executors a Python environment."""

_LOG4J = Path(__file__).with_name("log4j2.properties")

_ATTEMPTS = 4
_PY4J_LOGGERS = ("py4j.java_gateway", "py4j.clientserver")

LOCAL = "local[*]"

_ALWAYS = {
    # The same tables whatever the machine's time zone.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Falling back to pickled rows would hide a type that Arrow cannot carry; better to hear of it.
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
}
_WAREHOUSE = "spark.sql.warehouse.dir"
TEMPORARY = "warehouse-"
"""How the names of folders begin that hold the tables of one session."""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

MOST_ATTEMPTS = 11
"""At a run on a cluster, whatever it ended by; Spark gives a task one more. Machines that go away cost
attempts, too.
"""

_UNLESS_SET = {"spark.ui.showConsoleProgress": "false"}
_CLUSTER = {"spark.task.maxFailures": str(MOST_ATTEMPTS + 1)}

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
    # Each session has a page of its own; more than Spark's 16 may run on one machine.
    "spark.port.maxRetries": "256",
}


@contextmanager
def spark_session(
    master: str | None = None, app: str = "topicweave", **settings: str
) -> "Iterator[SparkSession]":
    """A Spark session for the length of a `with` block; `settings` are Spark's own (``**{"spark.x": "y"}``).

    Where a session is already running in this process (a notebook, a test run, a shell), that one is used and left
    running, with those of the `settings` that can be changed at run time in force until the block ends. Otherwise
    one is started at `master` and stopped afterwards; if that is None, where spark-submit or spark-defaults.conf
    says, else in this process's keeping (``local[*]``). The memory given to the first one
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

    _refuse_connect(master)
    if SparkContext._active_spark_context is not None:  # getActiveSession would only see this thread's
        running = SparkSession.builder.getOrCreate()
        with changed(running, settings):
            yield running
    else:
        with _started(master, app, settings) as started:
            yield started


def _refuse_connect(master: str | None) -> None:
    """A Spark Connect client has neither executors' files nor jobs to describe; only DataFrames pass through it."""
    remote = master if master and master.startswith("sc://") else os.environ.get("SPARK_REMOTE")
    if remote and (master is None or master == remote):
        raise BadInput(
            f"{remote}: a Spark Connect server; commands need a master (spark://…, yarn, k8s://…, local[*]). "
            "Unset SPARK_REMOTE, or give --master"
        )


def why_not_started(reason: str) -> str:
    """What Spark says of a start that failed, where that is no word of the cause.

    >>> why_not_started("Cannot call methods on a stopped SparkContext.")
    'nothing answers at that URL; is the master running, and are host and port right?'
    """
    if reason.startswith("Cannot call methods on a stopped SparkContext"):
        return "nothing answers at that URL; is the master running, and are host and port right?"
    return reason


@contextmanager
def _started(master: str | None, app: str, wanted: Mapping[str, str]) -> "Iterator[SparkSession]":
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # Every exception that concerns a query is also logged on stderr, as JSON: twice is once too often.
    for logger in "DataFrameQueryContextLogger", "SQLQueryContextLogger":
        PySparkLogger.getLogger(logger).disabled = True

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    given = submitted_settings() if submitted else default_settings()
    master = master or wanted.get("spark.master") or given.get("spark.master") or LOCAL
    local = is_local(master)
    settings = _settings(master, app, given, wanted)
    known = {**given, **settings}
    with (
        _environment(_variables(local, submitted, known)),
        _quiet(VERBOSE in settings),
        _warehouse(known) as place,
    ):
        settings |= place
        java = _JavaSide.running(settings)
        before = signal.getsignal(signal.SIGINT)
        try:
            spark = SparkSession(SparkContext(conf=_conf(settings), gateway=java.gateway))
        except Py4JJavaError as error:
            reason = str(error.java_exception.getMessage()).splitlines()[0]
            raise TopicweaveError(f"Spark did not start at {master}: {why_not_started(reason)}") from error
        with _interruptible(before) as interrupted:
            try:
                yield spark
            except Exception as error:
                java.keep_log()
                if interrupted():
                    raise KeyboardInterrupt from error
                if not isinstance(error, Py4JError | OSError) or java.alive():
                    raise
                raise TopicweaveError(java.ended()) from error
            finally:
                _stop(spark)


def keeps_tables(settings: Mapping[str, str]) -> bool:
    """Whether tables that are saved by name last longer than the session."""
    return (
        _WAREHOUSE in settings or settings.get("spark.sql.catalogImplementation", "in-memory") != "in-memory"
    )


@contextmanager
def _warehouse(known: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Where tables go that end with the session: not into the user's folder, as Spark would have it."""
    if keeps_tables(known):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=_folder(), ignore_cleanup_errors=True) as place:
        yield {_WAREHOUSE: place}


def _folder() -> Path:
    """For this user's temporary files."""
    folder = Path(tempfile.gettempdir(), f"topicweave-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def is_local(master: str | None) -> bool:
    """Whether executors are threads of the driver."""
    return re.match(r"local(\[|$)", master or "") is not None


def _settings(master: str, app: str, given: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """What we tell Spark, beside what it is told by its own means (`given`)."""
    quick = "-XX:TieredStopAtLevel=1 " if LIGHT in wanted and is_local(master) else ""
    log = f"-Dlog4j2.configurationFile={_LOG4J.absolute().as_uri()}"
    ours = {**_UNLESS_SET, **(_LOCAL if is_local(master) else _CLUSTER), "spark.app.name": app}
    return {
        **{name: value for name, value in ours.items() if name not in given},
        **_ALWAYS,
        _JAVA_OPTIONS: f"{quick}{given.get(_JAVA_OPTIONS, '')} {log}".strip(),
        **wanted,
        "spark.master": _retrying(master),
    }


def default_settings() -> dict[str, str]:
    """What stands in spark-defaults.conf; Spark reads it itself, and lets what it is told go before it."""
    folder = os.environ.get("SPARK_CONF_DIR") or (
        os.path.join(os.environ["SPARK_HOME"], "conf") if os.environ.get("SPARK_HOME") else None
    )
    try:
        lines = Path(folder or os.devnull, "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found = (re.match(r"\s*([^\s#!:=][^\s:=]*)[\s:=]+(.*\S)", line) for line in lines)
    return {pair[1]: pair[2] for pair in found if pair}


def submitted_settings() -> dict[str, str]:
    """What spark-submit was told, in whose Java process we are."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf(loadDefaults=True, _jvm=SparkContext._jvm).getAll())


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
    """On a cluster a task gets four attempts, in local mode one, unless the URL says otherwise: then one
    process that the system kills takes a whole sweep with it.
    """
    threads = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{threads[1] or 1},{_ATTEMPTS}]" if threads else master


def _conf(settings: Mapping[str, str]) -> "SparkConf":
    from pyspark import SparkConf

    return SparkConf().setAll(list(settings.items()))


class _JavaSide:
    """Spark's Java process and what it writes on stderr, in a file that is kept when something fails.

    Launched here and not by PySpark, because its first lines on stderr come before it has read any logging
    configuration: only another stderr keeps them off the terminal. As PySpark does, we keep it for the life of
    this process: later sessions start faster, and Spark's exceptions ask it for their own text when printed.
    """

    _current: "ClassVar[_JavaSide | None]" = None

    def __init__(self, settings: Mapping[str, str]) -> None:
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway

        handle, name = tempfile.mkstemp(".log", "spark-", _folder())
        self.log = Path(name)
        self._log = os.fdopen(handle, "r+", errors="replace")
        self._read = 0
        self._kept = False
        atexit.register(self._forget)
        try:
            self.gateway = launch_gateway(  # type: ignore[no-untyped-call]  # PySpark gives it no types
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

    def keep_log(self) -> None:
        self._kept = True

    def _forget(self) -> None:
        self._log.close()
        if not self._kept or not self.log.stat().st_size:
            self.log.unlink(missing_ok=True)


def kept_log() -> Path | None:
    """Where Spark's Java side complained while something failed; None if it did not."""
    java = _JavaSide._current
    return java.log if java is not None and java._kept and java.log.stat().st_size else None


def _stop(spark: "SparkSession") -> None:
    from py4j.protocol import Py4JError

    # When the Java side hangs up in the midst of a job, the end that sums up its counters would print a stack trace.
    spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # its own prints a stack
    try:
        with warnings.catch_warnings(action="ignore"):  # PySpark warns of a dead Java side; we raise an error
            spark.stop()
    except (Py4JError, OSError):
        # That was the Java half failing, for want of a Java side; a second call does what is left in Python.
        spark.sparkContext.stop()
        type(spark)._instantiatedSession = type(spark)._activeSession = None


def _variables(local: bool, submitted: bool, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment that Spark's launcher and workers read."""
    try:
        variables = {"JAVA_HOME": str(find_java().home)}
    except JavaNotFound as error:
        raise TopicweaveError(str(error)) from None
    if local and not submitted:
        import pyspark

        # The Spark that came with this PySpark, not whichever one SPARK_HOME was left pointing at; its settings count.
        conf = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
        if os.path.isdir(conf):
            variables["SPARK_CONF_DIR"] = os.path.abspath(conf)
        variables |= {
            # Workers must see the packages that this process sees.
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    elif python := executors_python(settings):
        # PySpark itself looks at nothing else: only spark-submit and the shell's script read the setting.
        variables["PYSPARK_PYTHON"] = python
    elif local:
        variables["PYSPARK_PYTHON"] = sys.executable
    return variables


def executors_python(settings: Mapping[str, str]) -> str | None:
    """The Python that executors start: as set, or the one in an archive of `topicweave cluster pack`."""
    if python := settings.get("spark.pyspark.python"):
        return python
    for archive in settings.get("spark.archives", "").split(","):
        place, _, alias = archive.partition("#")
        name = place.rpartition("/")[2]
        if name.startswith(ENVIRONMENT):
            return f"./{alias or name}/bin/python"
    return None


@contextmanager
def changed(spark: "SparkSession", wanted: Mapping[str, str]) -> Iterator[None]:
    """Those of some settings that can be changed at run time, until the block ends."""
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
