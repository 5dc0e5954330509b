"""Who polls: many readers in virtual time, with messages that take a while or are lost."""

import heapq
import random
from collections import Counter
from itertools import count

import pytest

from topicweave.feeds.rota import MOST_PAUSE, Act, Rota

PERIOD, TURNS, MOMENT = 100.0, 5, 5.0


class Readers:
    """Rotas of one feed, and a network between them."""

    def __init__(self, names: str, seed: int, lost: float = 0.0) -> None:
        self.now = 0.0
        self.random = random.Random(seed)
        self.lost = lost
        self.rotas = {
            name: Rota(name, PERIOD, TURNS, MOMENT, random.Random(f"{seed}{name}"), 0.0) for name in names
        }
        self.polls: list[tuple[float, str]] = []
        self.good = True
        self.apart: set[str] = set()
        self._number = count()
        self._due: list[tuple[float, int, str, str, tuple[float, int] | None]] = []

    def run(self, until: float) -> None:
        while self.now < until:
            while self._due and self._due[0][0] <= self.now:
                _, _, sender, to, poll = heapq.heappop(self._due)
                if to not in self.rotas or (sender in self.apart) != (to in self.apart):
                    continue
                if poll is None:
                    self.rotas[to].heard_claim(sender, self.now)
                else:
                    self.rotas[to].heard_poll(sender, *poll, self.good, self.now)
            for name, rota in list(self.rotas.items()):
                act = rota.due(self.now)
                if act is Act.CLAIM:
                    self._tell(name, None)
                elif act is Act.POLL:
                    self.polls.append((self.now, name))
                    self._tell(name, rota.polled(self.now, self.good))
            self.now += 0.1

    def _tell(self, sender: str, poll: tuple[float, int] | None) -> None:
        for to in self.rotas:
            if to != sender and self.random.random() >= self.lost:
                arrival = self.now + self.random.uniform(0.05, 0.5)
                heapq.heappush(self._due, (arrival, next(self._number), sender, to, poll))


@pytest.mark.parametrize("seed", range(10))
def test_one_polls_for_all_and_everybody_has_a_turn(seed: int) -> None:
    readers = Readers("abcdefghij", seed)
    readers.run(100 * PERIOD)
    # A hundred periods; a change of turns takes a little longer than one.
    assert 80 <= len(readers.polls) <= 105
    gaps = [
        later - earlier for (earlier, _), (later, _) in zip(readers.polls, readers.polls[1:], strict=False)
    ]
    assert max(gaps) < 2 * PERIOD
    shares = Counter(name for _, name in readers.polls)
    assert len(shares) >= 6
    assert max(shares.values()) <= 40


@pytest.mark.parametrize("seed", range(10))
def test_lost_messages_cost_some_polls_and_no_silence(seed: int) -> None:
    readers = Readers("abcdefghij", seed, lost=0.2)
    readers.run(50 * PERIOD)
    gaps = [
        later - earlier for (earlier, _), (later, _) in zip(readers.polls, readers.polls[1:], strict=False)
    ]
    assert max(gaps) < 3 * PERIOD
    assert len(readers.polls) <= 3 * 50  # of 500, did each poll for itself


@pytest.mark.parametrize("seed", range(10))
def test_when_the_one_who_polls_is_gone_another_one_goes_on(seed: int) -> None:
    readers = Readers("abcde", seed)
    readers.run(3.5 * PERIOD)
    last, name = readers.polls[-1]
    del readers.rotas[name]
    readers.run(10 * PERIOD)
    after = [at for at, _ in readers.polls if at > last]
    assert after[0] - last < 2 * PERIOD
    assert len({name for at, name in readers.polls if at > last}) <= 3


def test_a_reader_that_is_alone_polls() -> None:
    readers = Readers("a", 1)
    readers.run(20 * PERIOD)
    assert 15 <= len(readers.polls) <= 20


@pytest.mark.parametrize("seed", range(5))
def test_two_sides_poll_each_for_itself_and_one_gives_way_afterwards(seed: int) -> None:
    readers = Readers("abcdef", seed)
    readers.apart = {"a", "b", "c"}
    readers.run(10 * PERIOD)
    assert len(readers.polls) >= 15
    readers.apart = set()
    readers.run(14 * PERIOD)
    before = len(readers.polls)
    readers.run(34 * PERIOD)
    assert len(readers.polls) - before <= 24


def test_a_source_in_trouble_is_polled_ever_more_seldom() -> None:
    readers = Readers("abc", 1)
    readers.good = False
    readers.run(300 * PERIOD)
    assert len(readers.polls) <= 12
    rota = Rota("a", PERIOD, TURNS, MOMENT, random.Random(1), 0.0)
    pauses = [rota.polled(0.0, good=False)[0] for _ in range(30)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == MOST_PAUSE
    assert rota.polled(0.0, good=True)[0] == PERIOD
    assert rota.polled(0.0, good=True, wait=5 * PERIOD)[0] == 5 * PERIOD


def test_a_poll_that_comes_to_nothing_is_not_tried_again_at_once() -> None:
    rota = Rota("a", PERIOD, TURNS, MOMENT, random.Random(1), 0.0)
    polls = [at for at in range(1000) if rota.due(float(at)) is Act.POLL]
    assert len(polls) <= 10
