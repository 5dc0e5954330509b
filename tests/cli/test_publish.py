"""What `topicweave publish` prints of a receipt."""

from typing import Any

import pytest

from tests.cli.commands import call
from topicweave.client import through


@pytest.mark.parametrize(
    ("words", "receipt", "printed"),
    [
        ((), {"neighbours": 1, "accepted": 0, "reason": ""}, "taken by 1 neighbour"),
        ((), {"neighbours": 2, "accepted": 0, "reason": ""}, "taken by 2 neighbours"),
        (
            ("--wait-for", 1),
            {"neighbours": 1, "accepted": 1, "reason": ""},
            "taken by 1 neighbour, accepted by 1",
        ),
        (
            ("--wait-for", 1),
            {"neighbours": 2, "accepted": 0, "reason": "no"},
            "taken by 2 neighbours, accepted by 0",
        ),
    ],
)
def test_verdicts_are_counted_only_when_they_were_waited_for(
    monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...], receipt: dict[str, Any], printed: str
) -> None:
    monkeypatch.setattr(through, "publish_through", lambda *_: receipt)
    ended = call("publish", "news", "hello", *words)
    assert ended.stdout == f"{printed}\n"
    assert ended.exit_code == (1 if receipt["reason"] else 0)


@pytest.mark.parametrize(
    "words", [("publish", "a", "b", "--wait-for", -1), ("subscribe", "a", "--count", -1)]
)
def test_numbers_below_nothing_are_refused_before_a_node_is_asked(words: tuple[object, ...]) -> None:
    ended = call(*words, "--node", "127.0.0.1:1")
    assert ended.exit_code == 2
    assert str(words[-2]) in ended.stderr


def test_a_node_that_is_not_there_is_spoken_of_in_plain_words() -> None:
    ended = call("publish", "news", "hello", "--node", "127.0.0.1:1")
    assert ended.exit_code == 2
    assert "node 127.0.0.1:1 cannot be used (" in ended.stderr
    assert "refused" in ended.stderr
    assert "urlopen" not in ended.stderr
