"""docs/tables.md says what columns tables have; so does the code."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from topicweave.pipeline import generate, importing, stream, sweep, tables_of
from topicweave.pipeline.graphs.api import TABLES
from topicweave.pipeline.measuring import api
from topicweave.telemetry.interests import CHURN
from topicweave.telemetry.schema import RECORDED

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def shown(schema: pa.Schema) -> str:
    types = (field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema)
    return ", ".join(f"{name}: {type_}" for name, type_ in zip(schema.names, types, strict=True))


def page() -> dict[str, str]:
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: columns for name, columns in rows if name != "table"}


def test_the_page_has_every_table_with_its_columns() -> None:
    schemas = {
        "subscriptions": tables_of.SUBSCRIPTIONS,
        "topics": tables_of.TOPICS,
        "churn": tables_of.CHURN,
        "rtt": tables_of.RTT,
        "as_links": tables_of.AS_LINKS,
        "ases": tables_of.ASES,
        "rejects": importing.REJECTS,
        **RECORDED,
        "measures": api.MEASURED,
        "windows": stream.MEASURED,
        "results": sweep.RESULTS,
        "failures": sweep.FAILURES,
        **TABLES,
    }
    assert {name: shown(schema) for name, schema in schemas.items()} == {
        name: columns for name, columns in page().items() if name != "hosts"
    }


def test_tables_of_one_name_have_one_form() -> None:
    assert shown(generate.SUBSCRIPTIONS) == shown(tables_of.SUBSCRIPTIONS)
    assert shown(generate.TOPICS) == shown(tables_of.TOPICS)
    assert shown(CHURN) == shown(tables_of.CHURN)
    hosts = page()["hosts"]
    for schema in (tables_of.NODES, tables_of.HOST_SESSIONS, tables_of.PLACES, tables_of.HIGH_PLACES):
        for field in schema:
            assert f"{field.name}: {field.type}" in hosts
