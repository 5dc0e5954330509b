"""`python -m topicweave.cli` is `topicweave`."""

from topicweave.cli import main

if __name__ == "__main__":
    main()
