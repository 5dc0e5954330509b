"""Errors must survive the way back from a worker process."""

import pickle

from topicweave.errors import BadInput, UnknownName


def test_errors_travel_between_processes() -> None:
    for error in (BadInput("row 3: null"), UnknownName("system", "spidercats", ["vitis", "spidercast"])):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)


def test_unknown_names_list_the_known_ones() -> None:
    assert str(UnknownName("system", "x", ["b", "a"])) == "unknown system 'x'; known: a, b"
