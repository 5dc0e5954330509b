"""A standalone cluster on this machine whose workers know nothing of the driver.

The master and the workers are those that come with PySpark, each a process with an environment of its own: a bare
Python without any library, a working folder, no variable of ours. Where the system allows it (`unshare`), workers
run in a mount namespace in which the project's folder, with its virtual environment, is empty.
"""

import os
import re
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
    "spark.executor.memory": "512m",
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
    """A master and workers with one core each, each a process of its own."""

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
            self._wait_for(f"worker{number}", r"Successfully registered with master")

    def start_worker(self, name: str, hidden: Sequence[Path] = ()) -> None:
        self._java(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--webui-port", str(free_port()), "--cores", "1", "--memory", "700m"),
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
        return subprocess.run(
            self.command(*words, **conf),
            cwd=self.folder,
            env=clean_environment(self.folder),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )


def clean_environment(home: Path) -> dict[str, str]:
    """What a user's shell has, and nothing of this test run's: the session that tests share sets PYSPARK_PYTHON."""
    return {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8"}
