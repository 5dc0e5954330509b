"""Measures of mending, by hand."""

import numpy as np
import pytest

from topicweave.measures.mending import (
    BackupArcs,
    MendedEvents,
    backup_measures,
    backups_along_subscriptions,
    backups_by_subscriptions,
    messages_per_churn,
    view_measures,
)


def test_every_backup_is_an_arc_between_two_nodes() -> None:
    backups = BackupArcs.of({"a": ["b", "c"], "b": ["c"], "c": ["gone"]})
    assert backups.sizes.tolist() == [2, 1, 0]
    assert backups.incoming.tolist() == [0, 1, 2]
    assert backups.sizes.sum() == backups.incoming.sum()


def test_how_the_load_of_being_a_backup_is_spread() -> None:
    measured = backup_measures([31, 31, 31, 31], [0, 4, 19, 101])
    assert list(measured.values()) == [31.0, 0.0, 101.0, pytest.approx(101 / 31), 0.5, 0.25, 101 / 124]


def test_nobody_with_many_is_a_share_of_nothing() -> None:
    assert backup_measures([1, 1], [1, 1])[
        "share of all backups that are nodes with backup_in_degree above 100"
    ] == (0.0)


def test_backups_beside_subscriptions() -> None:
    lists, sizes = [8, 2, 4], [16, 2, 12]
    assert [group["backup_size"] for group in backups_by_subscriptions(lists, sizes).values()] == [2, 12, 16]
    ratios = [
        group["backup_size / subscriptions"] for group in backups_by_subscriptions(lists, sizes).values()
    ]
    assert ratios == [1, 3, 2]
    assert backups_along_subscriptions([1, 2, 3], [3, 5, 7]) == pytest.approx(1.0)
    assert backups_along_subscriptions([1, 2, 3], [5, 5, 5]) == 0.0


def test_local_views_are_counted_against_all_nodes() -> None:
    measured = view_measures([1] * 10 + [2] * 29 + [81])
    assert list(measured.values()) == [3.725, 81.0, 39 / 40, 0.25]


def test_messages_of_joins_and_leaves_and_labels_apart() -> None:
    told = messages_per_churn(
        MendedEvents(
            joins=np.array([True, False, False, False]),
            lists=np.array([5, 9, 1, 3]),
            messages=np.array([10.0, 30.0, 2.0, 4.0]),
            label_messages=np.array([0.0, 6.0, 0.0, 0.0]),
        )
    )
    assert told == {
        "messages_per_event": 13.0,
        "messages_per_join": 10.0,
        "label_messages_per_join": 0.0,
        "messages_by_size_join": [(5.0, 10.0)],
        "messages_per_leave": 12.0,
        "label_messages_per_leave": 2.0,
        "messages_by_size_leave": [(1.0, 2.0), (3.0, 4.0), (9.0, 30.0)],
    }
