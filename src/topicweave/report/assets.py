"""The style and the script of a page; both go into it, so that it opens without a network."""

from importlib.resources import files

STYLE = (files(__package__) / "page.css").read_text(encoding="utf-8")
SCRIPT = (files(__package__) / "page.js").read_text(encoding="utf-8")
