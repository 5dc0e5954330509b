"""Systems by name, and their settings as users give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from topicweave.errors import BadInput, UnknownName
from topicweave.systems.registry import SYSTEMS, Systems, find_system


def test_every_system_is_found_by_its_name() -> None:
    assert {"spidercast", "similarity", "random", "ring-per-topic"} <= set(SYSTEMS)
    for name, system in SYSTEMS.items():
        assert find_system(name) is system
        assert system.name == name
        assert system.summary
        assert system.source
        assert isinstance(system.settings(), system.parameters)


def test_an_unknown_system_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownName) as error:
        find_system("spidercats")
    assert "unknown system 'spidercats'" in str(error.value)
    for name in SYSTEMS:
        assert name in str(error.value)


def test_settings_may_come_as_text() -> None:
    settings = find_system("spidercast").settings(k_greedy="4", adaptive="true", heartbeat_period="0.5")
    assert (settings.k_greedy, settings.adaptive, settings.heartbeat_period) == (4, True, 0.5)
    assert settings.k_random == 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"k_gredy": 3}, "unknown field `k_gredy`"),
        ({"k_greedy": "three"}, "Expected `int`, got `str` - at `$.k_greedy`"),
        ({"k_greedy": 2.5}, "Expected `int`, got `float` - at `$.k_greedy`"),
        ({"k_greedy": -1}, "Expected `int` >= 0 - at `$.k_greedy`"),
        ({"margin": -1}, "at `$.margin`"),
        ({"adaptive": "perhaps"}, "at `$.adaptive`"),
        ({"connect_timeout": 0}, "at `$.connect_timeout`"),
        ({"quarantine": "nan"}, "at `$.quarantine`"),
        ({"publisher_interest": "inf"}, "at `$.publisher_interest`"),
        ({"heartbeat_period": 4.0}, "suspect_after (4) must be longer than heartbeat_period (4)"),
    ],
)
def test_wrong_settings_are_refused_in_words(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        find_system("spidercast").settings(**changes)
    message = str(error.value)
    assert message.startswith("system 'spidercast': ")
    assert complaint in message
    assert "k_greedy" in message.split("its parameters: ")[1]


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_no_system_takes_a_setting_it_does_not_have(name: str) -> None:
    with pytest.raises(BadInput, match="no_such_setting"):
        find_system(name).settings(no_such_setting=1)


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_settings_are_plain_data(name: str) -> None:
    settings = find_system(name).settings()
    assert msgspec.convert(msgspec.to_builtins(settings), SYSTEMS[name].parameters) == settings


def install(folder: Path, package: str, entry: str) -> None:
    """As pip would, but for the code: whose system it is must be clear before it is imported."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[topicweave.systems]\n{entry}\n")


def test_two_packages_with_a_system_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "geese", "flock = geese:FLOCK")
    install(tmp_path, "sheep", "flock = sheep:FLOCK")
    monkeypatch.syspath_prepend(tmp_path)
    systems = Systems([SYSTEMS["spidercast"]])
    assert list(systems) == ["spidercast"]
    assert systems.why_not("flock") == (
        "system 'flock': packages 'geese' and 'sheep' both bring one of that name; remove one of them"
    )
