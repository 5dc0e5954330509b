"""A job without an end, for a worker process."""

import os


def tell_and_go_on(_number: int) -> None:
    print(os.getpid(), flush=True)
    while True:
        pass
