"""Run all benchmarks, or those named; `--record` keeps the results, `--against VERSION` sets them beside kept ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rich.console import Console

from benchmarks import (
    designs,
    found,
    graphs,
    kernel,
    magnet,
    membership,
    mending,
    messages,
    patterns,
    pipeline,
    rappel,
    record,
    rest,
    scale,
    selection,
    show,
    sizing,
    vitis,
    wildcards,
)
from benchmarks.sheet import WIDTH, Sheet
from topicweave import __version__

BENCHMARKS: dict[str, Callable[[bool], list[Sheet]]] = {
    "kernel": kernel.run,
    "messages": messages.run,
    "selection": selection.run,
    "scale": scale.run,
    "pipeline": pipeline.run,
    "graphs": graphs.run,
    "designs": designs.run,
    "vitis": vitis.run,
    "rappel": rappel.run,
    "magnet": magnet.run,
    "sizing": sizing.run,
    "rest": rest.run,
    "membership": membership.run,
    "membership-large": membership.run_large,
    "found": found.run,
    "mending": mending.run,
    "patterns": patterns.run,
    "wildcards": wildcards.run,
    "show": show.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they work")
    parser.add_argument("--record", action="store_true", help="keep the results as those of this version")
    parser.add_argument("--markdown", action="store_true", help="print tables to paste into a page")
    parser.add_argument("--against", metavar="VERSION", help="how much dearer than that version's results")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known: {', '.join(BENCHMARKS)}")
    old = record.read(options.against) if options.against else None
    console = Console(width=WIDTH, highlight=False)
    regressions = []
    for name in options.names or BENCHMARKS:
        sheets = BENCHMARKS[name](options.quick)
        for sheet in sheets:
            if options.markdown:
                print(f"{sheet.title}\n\n{sheet.markdown()}\n")
            else:
                console.print(sheet.shown())
            if old is None:
                continue
            beside = record.against(old, sheet, options.quick)
            if beside is None:
                console.print(f"no results of these sizes in {old.version}\n")
            else:
                console.print(beside.shown())
                regressions += record.worse(beside)
        if options.record:
            console.print(f"kept in {record.write(__version__, sheets, options.quick)}\n")
    if old is not None:
        console.print(
            f"worse than {old.version} by more than {record.WORSE - 1:.0%}: {len(regressions)} figures"
        )
        for line in regressions:
            console.print(f"  {line}")


if __name__ == "__main__":
    main()
