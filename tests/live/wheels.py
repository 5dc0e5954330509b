"""This project as a wheel in an environment of its own, as users have it. Libraries come from the environment
that runs the tests.
"""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
BUILD = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--quiet", "--no-deps")


def copy_sources(folder: Path) -> None:
    """What a wheel is built from, as it is in the working tree."""
    for name in SOURCES[:-1]:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(
        ROOT / "src",
        folder / "src",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nbi", "*.nbc"),
    )


def lend_libraries(environment: Path) -> None:
    """A line of a path file adds a folder and reads none of its path files: this project's own installation
    stays unseen.
    """
    site = next(environment.glob("lib/python*/site-packages"))
    (site / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")


def installed(sources: Path, environment: Path) -> Path:
    """The command of a wheel built from these sources."""
    subprocess.run([*BUILD, "--wheel-dir", str(sources / "dist"), str(sources)], check=True)
    venv.create(environment, with_pip=False)
    lend_libraries(environment)
    pip = (sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"))
    wheel = next((sources / "dist").glob("*.whl"))
    subprocess.run([*pip, "install", "--no-index", "--quiet", "--no-deps", str(wheel)], check=True)
    return environment / "bin" / "topicweave"
