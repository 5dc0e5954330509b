"""All studies by name, paper by paper as the registry of runs has them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib import import_module

from topicweave.errors import UnknownName
from topicweave.papers import agreement
from topicweave.papers.study import Study
from topicweave.runs.registry import PAPERS


def _studies_of(paper: str) -> list[Study]:
    found: list[Study] = import_module(f"topicweave.papers.{paper}").STUDIES
    return found


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (*itertools.chain.from_iterable(map(_studies_of, PAPERS)), *agreement.STUDIES)
}


def find_study(name: str) -> Study:
    try:
        return STUDIES[name]
    except KeyError:
        raise UnknownName("study", name, _worth_naming(name)) from None


def choose(names: Sequence[str]) -> list[Study]:
    """The studies that names and patterns stand for, each once. Raises `UnknownName`."""
    chosen: dict[str, Study] = {}
    for name in names:
        matching = [study for study in STUDIES if fnmatchcase(study, name)] if is_pattern(name) else []
        for found in matching or [name]:
            chosen[found] = find_study(found)
    return list(chosen.values())


def is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def choose_papers(names: Sequence[str]) -> list[Study]:
    """Studies of the papers named, or single ones; all but those that need live nodes, if none is named."""
    papers = {name.split("/")[0] for name in STUDIES}
    if not names:
        return [study for name, study in STUDIES.items() if "/" in name]
    return choose([f"{name}/*" if name in papers and name not in STUDIES else name for name in names])


def _worth_naming(name: str) -> list[str]:
    """Those of the paper that was meant, or else the papers: all sixty on a line would help nobody."""
    paper = name.split("/", maxsplit=1)[0]
    same = [study for study in STUDIES if study.startswith(f"{paper}/")]
    return same or list(
        dict.fromkeys(f"{study.split('/')[0]}/*" if "/" in study else study for study in STUDIES)
    )
