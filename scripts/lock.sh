#!/bin/sh
# Write requirements/*.txt anew: versions and hashes for every platform and Python we support, and nothing of the
# machine that made them. uv resolves (pip cannot for other platforms); it comes from the package index into a
# folder that is thrown away, so nobody needs it installed. Versions already locked stay unless --upgrade is given.
set -eu
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -I -m venv "$folder"
"$folder/bin/python" -I -m pip install -qq uv

compile() { # name, uv's options
    name=$1
    shift
    UV_CUSTOM_COMPILE_COMMAND="make lock" "$folder/bin/uv" --quiet pip compile \
        --universal --python-version 3.11 --generate-hashes --output-file "requirements/$name.txt" "$@" >/dev/null
    if grep -nE '://|^-' "requirements/$name.txt"; then
        echo "lock: requirements/$name.txt names a place (above); a lock holds versions and hashes only" >&2
        exit 1
    fi
    echo "lock: requirements/$name.txt"
}

compile build --group build "$@"
compile main --extra pipeline --extra compare --extra report --extra live --extra feeds --extra dev --constraint requirements/build.txt pyproject.toml "$@"
compile node --extra live --constraint requirements/main.txt pyproject.toml "$@"
compile bench-live --group bench-live --constraint requirements/main.txt "$@"
