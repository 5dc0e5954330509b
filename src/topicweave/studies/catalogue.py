"""All studies by name. A new paper adds its module here."""

from __future__ import annotations

from topicweave.errors import UnknownName
from topicweave.studies import agreement, magnet, omen, rappel, spidercast, vitis
from topicweave.studies.study import Study

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
        raise UnknownName("study", name, list(STUDIES)) from None
