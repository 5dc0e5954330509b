"""The command line.

Nothing heavy is imported before a command needs it, so that help comes at once and a node starts light.
"""


def main() -> None:
    """What the `topicweave` script calls."""
    import sys

    try:
        from topicweave.cli.app import app

        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # A terminal that cannot show a sign shows a question mark; it is no reason to fail.
                stream.reconfigure(errors="replace")
        app(prog_name="topicweave")
    except KeyboardInterrupt:  # While it was still being imported, or already on its way out.
        print("stopped; run the same command again to continue", file=sys.stderr)
        sys.exit(130)
