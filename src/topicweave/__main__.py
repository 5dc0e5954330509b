"""`python -m topicweave` is the `topicweave` command."""

from topicweave.cli import main

if __name__ == "__main__":
    main()
