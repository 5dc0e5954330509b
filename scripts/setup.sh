#!/bin/sh
# Find a Python that is new enough and let setup.py do the rest.
set -eu
cd "$(dirname "$0")/.."

# The quick way out when there is nothing to do: no search, one short-lived process.
if [ -z "${PYTHON:-}" ] && [ -x .venv/bin/python ] && .venv/bin/python -I scripts/setup.py --check "$@"; then
    exit 0
fi

# What .venv was made with comes first, so that a later set-up does not change Pythons of its own accord. Each is
# asked for the Python behind it: one inside a virtual environment may go away, and .venv's own is about to.
probe='import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys._base_executable)'
for name in ${PYTHON:-.venv/bin/python python3 python3.14 python3.13 python3.12 python3.11}; do
    if python=$("$name" -I -c "$probe" 2>/dev/null); then
        exec "$python" -I scripts/setup.py "$@"
    fi
done
echo "setup: Python 3.11 or newer is needed, and ${PYTHON:-none of python3, python3.11 to python3.14} is not it:" \
    "install one, or name it: make setup PYTHON=/path/to/python" >&2
exit 1
