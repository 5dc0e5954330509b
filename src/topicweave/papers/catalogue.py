"""All studies by name. A new paper adds its module here."""

from __future__ import annotations

from topicweave.errors import UnknownName
from topicweave.papers import agreement, magnet, omen, rappel, spidercast, vitis
from topicweave.papers.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *spidercast.STUDIES,
        *omen.STUDIES,
        *vitis.STUDIES,
        *magnet.STUDIES,
        *rappel.STUDIES,
        *agreement.STUDIES,
    )
}


def find_study(name: str) -> Study:
    try:
        return STUDIES[name]
    except KeyError:
        raise UnknownName("study", name, _worth_naming(name)) from None


def _worth_naming(name: str) -> list[str]:
    """Those of the paper that was meant, or else the papers: all sixty on a line would help nobody."""
    paper = name.split("/", maxsplit=1)[0]
    same = [study for study in STUDIES if study.startswith(f"{paper}/")]
    return same or list(
        dict.fromkeys(f"{study.split('/')[0]}/*" if "/" in study else study for study in STUDIES)
    )
