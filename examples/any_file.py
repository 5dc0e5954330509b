"""Twelve files of different shapes hold the same subscriptions: what is understood of each, and the answer.

python examples/any_file.py [FILE …]

Prints the table of docs/workloads.md. With files it does the same for these, on 100 nodes of each.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import topicweave

SYSTEMS = ["spidercast", "omen", "vitis", "gossipsub"]
LISTS = {f"u{n}": sorted({f"t{n % 7}", f"t{(n + n // 7 + 1) % 7}", f"t{3 * n % 7}"}) for n in range(30)}
ROWS = [(node, topic) for node, topics in LISTS.items() for topic in topics]


def rows(separator: str, header: str = "", columns: str = "{0}{s}{1}") -> str:
    lines = [columns.format(*row, n, s=separator) for n, row in enumerate(ROWS)]
    return "\n".join([header, *lines] if header else lines) + "\n"


SHAPES = {
    "header.csv": rows(",", "member_id,group_id"),
    "bare.txt": rows(" "),
    "tabs.tsv": rows("\t", "userID\tartistID"),
    "semicolons.csv": rows(";", "customer;product"),
    "ratings.dat": rows("::", columns="{0}{s}{1}{s}5{s}97830{2}"),
    "pandas.csv": rows(",", ",user,topic,weight", "{2}{s}{0}{s}{1}{s}0.5"),
    "quoted.csv": rows(",", '"User_ID","Game_ID"', '"{0}"{s}"{1}"'),
    "lists.txt": "".join(" ".join([node, *topics]) + "\n" for node, topics in LISTS.items()),
    "lists.json": json.dumps(LISTS),
    "records.jsonl": "".join(json.dumps({"user": node, "item": topic}) + "\n" for node, topic in ROWS),
}


def write_all(folder: Path) -> list[Path]:
    for name, text in SHAPES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(folder / "packed.zip", "w") as packed:
        packed.writestr("edges.csv", rows(",", "src,dst"))
    nodes, topics = zip(*ROWS, strict=True)
    pq.write_table(
        pa.table({"player": nodes, "zone": pa.array(topics).dictionary_encode()}), folder / "t.parquet"
    )
    return [folder / name for name in [*SHAPES, "packed.zip", "t.parquet"]]


def main(files: list[Path], out: Path) -> None:
    print("| file | understood | nodes, topics | fewest links of those that reach everybody |")
    print("|---|---|---|---|")
    for file in files:
        said: list[str] = []
        result = topicweave.compare(
            file, systems=SYSTEMS, nodes=100, seeds=1, events=100, crash=0.0, budget=None, out=out / file.name,
            runs=out / "runs", workers=1, note=said.append,
        )  # fmt: skip
        understood = said[0].removeprefix(f"{file}: ").removeprefix(f"{file.name}: ")
        whole = result.workload.get("sampled_from", result.workload)
        links = {
            entry.label: entry.measure("degree_mean") for entry in result.entries if entry.reaches_everybody
        }
        answer = f"`{min(links, key=links.__getitem__)}`" if links else "none of them"
        print(
            f"| {file.name} | {understood} | {whole['nodes']:,}, {whole['topics']:,} | {answer} |", flush=True
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        given = [Path(word) for word in sys.argv[1:]]
        main(given or write_all(Path(scratch)), Path(scratch) / "out")
