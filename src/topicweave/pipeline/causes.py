"""The line of a stack trace that says what went wrong."""

from __future__ import annotations

import re

_NAMED = re.compile(
    r"(?:Caused by: )?(?P<name>(?:[\w$]+\.)*[\w$]*(?:Error|Exception|BadInput|Exit|Failure)\b)(?:: ?(?P<what>.*))?$"
)
_WRAPPERS = re.compile(
    r"(PySparkException|PythonException|SparkException|Py4JJavaError|ExecutionException|StreamingQueryException"
    r"|UndeclaredThrowableException|InvocationTargetException)$"
)
_TASK = re.compile(
    r"(Job aborted due to stage failure: |Task \d+ in stage [\d.]+ failed \d+ times, most recent failure: "
    r"|Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): )+"
)
_LOST = re.compile(r"(ExecutorLostFailure \([^)]*\)(?: Reason: .*)?)")


def cause(text: str) -> str:
    """The innermost error that is named, with its message; never a line of the stack itself."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lost = [match[1] for line in lines if (match := _LOST.search(line))]
    if lost:
        return lost[0][:300]
    named: list[tuple[bool, bool, str]] = []
    for place, line in enumerate(lines):
        found = _NAMED.match(_TASK.sub("", line).removeprefix(": "))
        while (
            found
            and _WRAPPERS.search(found["name"])
            and (inner := _NAMED.match(_TASK.sub("", found["what"] or "")))
        ):
            found = inner
        if not found or line.startswith("at "):
            continue
        what, after = found["what"] or "", lines[place + 1] if place + 1 < len(lines) else "at "
        if not what and not re.match(r"(at |File |Caused by|\.\.\. \d+ more)", after):
            what = after
        java = re.match(r"(java|scala|org)\.", found["name"]) is not None
        wrapper = _WRAPPERS.search(found["name"]) is not None
        named.append(
            (wrapper, java, f"{found['name'].rpartition('.')[2]}: {what}" if what else found["name"])
        )
    for wrapper, java in ((False, False), (False, True), (True, False), (True, True)):
        fitting = [words for one, other, words in named if (one, other) == (wrapper, java)]
        if fitting:
            return fitting[-1][:300]
    said = [line for line in lines if not re.match(r"(at |File |\.\.\. \d+ more|\^+$)", line)]
    return (said or ["no reason given"])[0][:300]
