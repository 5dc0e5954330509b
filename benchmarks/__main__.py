"""`python -m benchmarks [--quick] [NAME …]`: run all benchmarks, or those named."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rich.console import Console

from benchmarks import designs, kernel, magnet, pipeline, rappel, scale, selection, vitis
from benchmarks.sheet import WIDTH, Sheet

BENCHMARKS: dict[str, Callable[[bool], list[Sheet]]] = {
    "kernel": kernel.run,
    "selection": selection.run,
    "scale": scale.run,
    "pipeline": pipeline.run,
    "designs": designs.run,
    "vitis": vitis.run,
    "rappel": rappel.run,
    "magnet": magnet.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they work")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known: {', '.join(BENCHMARKS)}")
    console = Console(width=WIDTH)
    for name in options.names or BENCHMARKS:
        for sheet in BENCHMARKS[name](options.quick):
            console.print(sheet.shown())


if __name__ == "__main__":
    main()
