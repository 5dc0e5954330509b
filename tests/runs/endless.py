"""A job that goes on for longer than any test waits, for a worker process."""

import os
import time


def tell_and_go_on(_number: int) -> None:
    # One write, so that two processes do not mix theirs.
    os.write(1, f"{os.getpid()}\n".encode())
    # Not for ever: who ends the tests by force may leave the command behind.
    end = time.monotonic() + 240.0
    while time.monotonic() < end:
        pass
