"""Getting this project to the executors of a cluster."""

from __future__ import annotations

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import topicweave

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship_project(spark: SparkSession, folder: Path) -> Path:
    """Send this version of the project's own code to every executor, as a zip file made in `folder`.

    Libraries (NumPy, PyArrow, …) are not sent: executors need a Python that has them, see docs/cluster.md.
    """
    packed = _packed()
    # Named by its contents: executors keep what they have by name.
    path = folder / f"topicweave-{hashlib.sha1(packed, usedforsecurity=False).hexdigest()[:12]}.zip"
    path.write_bytes(packed)
    spark.sparkContext.addPyFile(str(path))
    return path


def _packed() -> bytes:
    root = Path(topicweave.__file__).parent
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                entry = zipfile.ZipInfo((Path("topicweave") / file.relative_to(root)).as_posix())
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
