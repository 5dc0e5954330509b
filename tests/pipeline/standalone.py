"""A standalone cluster on this machine whose workers know nothing of the driver.

The master and the workers are those that come with PySpark, each a process with an environment of its own: a bare
Python without any library, a working folder, no variable of ours. Where the system allows it (`unshare`), workers
run in a mount namespace in which the project's folder, with its virtual environment, is empty.
"""

import json
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyspark

from topicweave.pipeline.java import find_java

PROJECT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent

TIMEOUT = 900
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # An executor on each worker, and room beside it for one of another command.
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    # On a handful of rows, planning anew and compiling each query takes longer than running it.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def namespaces() -> tuple[str, ...]:
    """The command that gives a process mounts of its own; empty where the system has none for us."""
    for command in (("unshare", "-m"), ("unshare", "-rm")):
        if (
            shutil.which("unshare")
            and not subprocess.run(
                [*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
            ).returncode
        ):
            return command
    return ()


class Cluster:
    """A master and workers, each a process of its own."""

    def __init__(self, folder: Path, python: str | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.python = folder / "python"
        base = str(python or getattr(sys, "_base_executable", sys.executable))
        subprocess.run([base, "-I", "-m", "venv", "--without-pip", str(self.python)], check=True)
        self.spark_home = folder / "spark"
        if namespaces():
            self.spark_home.mkdir()
        else:
            self.spark_home.symlink_to(SPARK_HOME)

    def start(self, hidden: Sequence[Sequence[Path]] = ((), ())) -> None:
        """`hidden`: for each worker the folders that it sees empty, besides the project's."""
        self._java(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(free_port())),
        )
        self._wait_for("master", r"I have been elected leader")
        for number, folders in enumerate(hidden, start=1):
            self.start_worker(f"worker{number}", folders)
        for number in range(1, len(hidden) + 1):
            self.wait_for_worker(f"worker{number}")

    def wait_for_worker(self, name: str) -> None:
        self._wait_for(name, r"Successfully registered with master")

    def stop_worker(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def start_worker(self, name: str, hidden: Sequence[Path] = ()) -> None:
        """`wait_for_worker` comes back when it is there."""
        self._java(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--webui-port", str(free_port()), "--cores", "3", "--memory", "1600m"),
            *("--work-dir", str(self.folder / name), self.url),
            hidden=hidden,
        )

    def applications(self, worker: str) -> int:
        """How many applications a worker has taken part in."""
        return len(list((self.folder / worker).glob("app-*")))

    def executors(self, worker: str) -> list[int]:
        """The processes that a worker has started: a launcher, or the Java it became."""
        parent = self.processes[worker].pid
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[1]) == parent:
                found.append(int(entry.name))
        return found

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.kill()
        for process in self.processes.values():
            process.wait()

    def _java(self, name: str, main: str, *arguments: str, hidden: Sequence[Path] = ()) -> None:
        command = [str(self.spark_home / "bin" / "spark-class"), main, *arguments]
        environment = {
            "PATH": f"{self.python}/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "SPARK_HOME": str(self.spark_home),
            "JAVA_HOME": str(find_java().home),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        if namespaces():
            steps = [f"mount --bind {shlex.quote(str(SPARK_HOME))} {shlex.quote(str(self.spark_home))}"]
            steps += [f"mount -t tmpfs none {shlex.quote(str(place))}" for place in (PROJECT, *hidden)]
            command = [*namespaces(), "sh", "-c", " && ".join([*steps, f"exec {shlex.join(command)}"])]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def _wait_for(self, name: str, words: str) -> None:
        deadline = time.monotonic() + 120
        log = self.folder / f"{name}.log"
        while not re.search(words, log.read_text(errors="replace")):
            assert time.monotonic() < deadline, f"{name}: {log.read_text(errors='replace')[-2000:]}"
            try:
                # A moment, or at once when the process has ended.
                self.processes[name].wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(log.read_text(errors="replace")[-2000:])

    def command(self, *words: str, **conf: str) -> list[str]:
        """`topicweave WORDS` on this cluster, as a user would type it."""
        settings = {**CONF, **conf}
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        return [sys.executable, "-m", "topicweave.cli", *words, "--master", self.url, *options]

    def run(self, *words: str, **conf: str) -> subprocess.CompletedProcess[str]:
        return run_command(self.command(*words, **conf), self.folder)

    def driver(self, **conf: str) -> "Driver":
        return Driver(self, {**CONF, **conf})


class Driver:
    """A process with a session on a cluster, as a notebook has one: commands run in it one after the other."""

    def __init__(self, cluster: Cluster, conf: dict[str, str]) -> None:
        self._log = (cluster.folder / "driver.log").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMANDS, cluster.url, json.dumps(conf)],
            cwd=cluster.folder,
            env=clean_environment(cluster.folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def begin(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def has_ended(self) -> bool:
        """Whether the command that was begun is over."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def outcome(self) -> subprocess.CompletedProcess[str]:
        """What became of the command that was begun."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(self._log.read())
        code, said, complained = json.loads(line)
        return subprocess.CompletedProcess("", code, said, complained)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.begin(*words)
        return self.outcome()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


_COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from topicweave.cli import main
from topicweave.pipeline.session import spark_session

answers, url, conf = sys.stdout, sys.argv[1], json.loads(sys.argv[2])
with spark_session(url, app="notebook", **conf):
    for line in sys.stdin:
        sys.argv, code = ["topicweave", *json.loads(line)], 0
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()) as complained:
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
        print(json.dumps([code, said.getvalue(), complained.getvalue()]), file=answers, flush=True)
"""


def run_command(command: Sequence[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """With an environment that has nothing of this test run's."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**clean_environment(folder), **more},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def clean_environment(home: Path) -> dict[str, str]:
    """What a user's shell has, and nothing of this test run's: the session that tests share sets PYSPARK_PYTHON."""
    return {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8"}
