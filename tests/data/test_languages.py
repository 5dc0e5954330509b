"""Tables of Markdown are read without their rules; YAML, TOML and pages of Markdown get one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.test_tables import read
from topicweave.errors import BadInput


@pytest.mark.parametrize(
    "text",
    [
        "| user | topic |\n|---|---|\n| ann | news |\n| bob | news |\n| bob | go |\n",
        "user | topic\n:--- | ---:\nann | news\nbob | news\nbob | go\n",
        "# Who wants what\n\n| who  | what |\r\n| :-: | --- |\r\n| ann | news |\r\n| bob | go |\r\n|bob|news|\r\n",
        "| name1 | name2 |\n|--|--|\n| ann | news |\n| bob | news |\n| bob | go |",
        "| user | topics |\n|---|---|\n| ann | news |\n| bob | news, go |\n",
    ],
)
def test_the_rule_of_a_markdown_table_is_nobody(tmp_path: Path, text: str) -> None:
    found, understood = read(tmp_path, text, "my.md")
    assert found == {"ann": ["news"], "bob": ["go", "news"]}
    assert "with a header" in understood.shape
    assert read(tmp_path, text, "my.md", delimiter="|")[0] == found


def test_a_cell_of_a_markdown_table_may_be_empty(tmp_path: Path) -> None:
    text = "| user | topic | day |\n|---|---|---|\n| ann | news | |\n| bob | | 1 |\n"
    assert read(tmp_path, text)[0] == {"ann": ["news"], "bob": []}


def test_a_wrong_row_of_a_markdown_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 3: 3 columns, not 2"):
        read(tmp_path, "| user | topic |\n|---|---|\n| ann | news | x |\n| bob | news |\n")


@pytest.mark.parametrize(
    "text",
    [
        "Our users:\n\n| user | topic |\n|---|---|\n| ann | news |\n",
        "| user | topic |\n|---|---|\n| ann | news |\n\n| user | topic |\n|---|---|\n| bob | news |\n",
    ],
)
def test_a_page_of_markdown_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match="a page of Markdown, not a table alone; give one table"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("ann:\n- news\n- go\nbob:\n- news\n", "YAML"),
        ("ann:\n  - news\n  - go\nbob:\n  - news\n", "YAML"),
        ("- user: ann\n  topic: news\n- user: bob\n  topic: go\n", "YAML"),
        ("---\nann: [news, go]\nbob: [news]\n", "YAML"),
        ("- ann: news\n- bob: news\n", "YAML"),
        ('ann = ["news"]\nbob = ["news"]\n', "TOML"),
        ('ann = ["news"]\nbob = ["news", "go"]\n', "TOML"),
        ('[nodes]\nann = ["news"]\nbob = ["news", "go"]\n', "TOML"),
        ('ann = [\n  "news",\n  "go",\n]\nbob = ["news"]\n', "TOML"),
        ('[[node]]\nname="ann"\ntopics=["news"]\n', "TOML"),
        ("ann = news\nbob = news\n", "TOML or a file of settings"),
    ],
)
def test_other_languages_are_refused_by_their_names(tmp_path: Path, text: str, language: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text)
    assert f"my.csv: looks like {language}" in str(error.value)
    assert str(error.value).endswith(
        'give JSON, {"ann": ["news", "go"]}, or a line for each subscription: ann,news'
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ann: [news, go]\nbob: [news]\n", {"ann": ["go", "news"], "bob": ["news"]}),
        ("ann,-\nbob,-\n", {"ann": ["-"], "bob": ["-"]}),
        ("ann,a = b\nbob,a = b\n", {"ann": ["a = b"], "bob": ["a = b"]}),
        ("ann|x\nbob|x\n-|-\n", {"ann": ["x"], "bob": ["x"], "-": ["-"]}),
        ("ann => news\nbob => news\n", {"ann": ["news"], "bob": ["news"]}),
    ],
)
def test_what_only_resembles_them_is_read(tmp_path: Path, text: str, found: dict[str, list[str]]) -> None:
    assert read(tmp_path, text)[0] == found


def test_who_names_the_separator_is_believed(tmp_path: Path) -> None:
    assert read(tmp_path, "ann = news\nbob = news\n", delimiter="=")[0] == {"ann": ["news"], "bob": ["news"]}
