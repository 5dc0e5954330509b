"""`topicweave systems`: what there is to choose from."""

from __future__ import annotations


def systems() -> None:
    """List the systems: what they do, where they come from, their parameters and defaults.

    \b
    Example:
      topicweave systems
    """
    import textwrap

    from rich.text import Text

    from topicweave.cli.output import console
    from topicweave.report.comparison import as_text
    from topicweave.systems.parameters import flat
    from topicweave.systems.registry import SYSTEMS

    out = console()
    indent = 4 * " "
    for system in SYSTEMS.values():
        parameters = " ".join(f"{name}={as_text(value)}" for name, value in flat(system.settings()).items())
        out.print(Text.assemble((system.name, "bold"), f": {system.summary}"), soft_wrap=True)
        out.print(Text(indent + system.source, "dim"), soft_wrap=True)
        filled = textwrap.fill(parameters, out.width, initial_indent=indent, subsequent_indent=indent)
        out.print(Text(filled), soft_wrap=True)
        out.print()
    for broken in SYSTEMS.broken.values():
        out.print(Text(broken, "red"), soft_wrap=True)
    example = "topicweave compare DIR --systems spidercast:k_greedy=2,random"
    out.print(f"Set parameters where you name a system: {example}", soft_wrap=True)
