"""Which system suits these subscriptions? A table here, and a page with figures beside it.

python examples/compare.py [OUT]
"""

import sys
from pathlib import Path

import topicweave

TOPICS = ["news", "sport", "music", "film", "food", "chess", "birds", "trains"]


def main(out: Path) -> None:
    readers = {f"reader-{n}": [TOPICS[n % 8], TOPICS[(n + n // 8 + 1) % 8]] for n in range(40)}
    systems = ["spidercast", "vitis", "broker"]
    result = topicweave.compare(readers, systems=systems, seeds=1, events=20, out=out, workers=2)
    print(result.table(width=100))
    print("report:", result.report(out / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/example-compare"))
