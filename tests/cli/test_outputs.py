"""What comparisons leave behind: a folder for each data set, whole files, and pages that can be made again."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, call

QUICK = ["--systems", "random,broker", "--events", 10, "--settle", 3, "--seeds", 1, "--workers", 1]
ONE, OTHER = "user,topic\nann,x\nbob,x\neve,x\n", "user,topic\nann,y\nbob,y\neve,y\ndan,y\n"


def file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_data_set_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a/my.csv": ONE, "b/my.csv": OTHER, "b/other.csv": ONE}.items():
        ended = call("compare", file(Path(name), text), *QUICK)
        assert ended.exit_code == 0, ended.stderr
    written = {str(path) for path in Path("out/compare").glob("*/report.html")}
    assert written == {f"out/compare/{name}/report.html" for name in ("my", "my-2", "other")}
    again = call("compare", Path("a/my.csv"), *QUICK)
    assert "report: out/compare/my/report.html" in again.stdout
    assert "2/2 finished in an earlier run" in again.stderr


def test_results_of_another_file_are_not_replaced(tmp_path: Path) -> None:
    one, other = file(tmp_path / "one.csv", ONE), file(tmp_path / "other.csv", OTHER)
    out = tmp_path / "out"
    assert call("compare", one, *QUICK, "--out", out).exit_code == 0
    before = (out / "report.html").read_bytes()
    refused = call("compare", other, *QUICK, "--out", out)
    assert refused.exit_code == 2
    assert f"{out}: holds the results of {one}; choose another --out" in refused.stderr
    assert (out / "report.html").read_bytes() == before
    assert call("compare", one, *QUICK, "--out", out).exit_code == 0


def test_a_report_is_made_again_from_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "kept" / "out"
    shown = call("compare", file(tmp_path / "one.csv", ONE), *QUICK, "--max-degree", 1, "--out", out).stdout
    page, told = (out / "report.html").read_bytes(), (out / "compare.json").read_bytes()
    for name in ("report.html", "compare.json"):
        (out / name).unlink()
    moved = tmp_path / "elsewhere"
    out.rename(moved)
    monkeypatch.setattr("topicweave.runs.run.carry_out", lambda _run: pytest.fail("run again"))
    again = call("report", moved)
    assert again.exit_code == 0, again.stderr
    assert again.stdout == shown.replace(str(out), str(moved))
    assert (moved / "report.html").read_bytes() == page
    assert (moved / "compare.json").read_bytes() == told


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    ended = call("report", tmp_path)
    assert ended.exit_code == 2
    assert "results.msgpack: No such file or directory; name a folder that" in ended.stderr
    (tmp_path / "results.msgpack").write_bytes(b"nonsense")
    assert "not what `topicweave compare` writes" in call("report", tmp_path).stderr


def test_a_disk_that_is_full_does_not_take_the_table_away(tmp_path: Path) -> None:
    """No file may be larger than a megabyte here; the page is, since it holds plotly.js."""
    words = ["compare", file(tmp_path / "one.csv", ONE), *QUICK, "--out", tmp_path / "out"]
    limit = 1_000_000
    ended = subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert ended.returncode == 2
    assert "broker" in ended.stdout
    assert f"{tmp_path}/out/report.html: cannot write it (File too large)" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list((tmp_path / "out").glob(".*partial"))
