"""Did a test command find any test to run? Runners that find none seldom fail: they say so."""

import re

NO_TESTS = 5  # exit code of pytest, and of Python's unittest

# A test has run: whatever else is said, by another package for one, there are some.
_RAN = (
    # pytest, jest, vitest, mocha, cargo, deno, bun
    r"\b[1-9]\d* (?:x?pass(?:ed|ing)?|x?fail(?:ed|ing|ures?)?|errors?)\b",
    r"\b[1-9]\d* (?:tests?|examples?|specs?|runs?), \d+ (?:assertion|failure)s?\b",  # rspec, mix
    r"\b(?:Passed|Failed): +[1-9]",  # dotnet
    r"\bRan [1-9]\d* tests? in\b",  # unittest
    r"\b(?:Tests run:|Executed) [1-9]",  # Maven, swift
    r"^OK \([1-9]",  # phpunit
    r"^ok[ \t]+[A-Za-z_.]\S*[ \t](?!.*\[no tests to run\])",  # go
    r"^(?:--- )?FAIL\b",  # go, jest
)
_NONE = (
    r"\bno tests (?:ran|collected|(?:were )?(?:found|run|executed)|to run|match(?:ing)?\b)",
    r"\bno (?:test (?:files? found|modules? found|matches|was executed)|matching test)",
    r"\b0 (?:pass(?:ed|ing)?\b|(?:tests?|examples|specs|runs), 0 )",
    r"\b(?:ran|running|executed|matched) 0 tests\b",
    r"\b(?:all examples were filtered out|[1-9]\d* deselected in)\b",
    r"^[#ℹ] tests 0$",  # node
)
_SKIPPED = r"\b[1-9]\d* (?:skipped|skip|pending|ignored|deselected|filtered out)\b"
_OF_NODE = r"^[#ℹ] (?:pass|fail) (\d+)$"
_FILE = r"^(?:✔|ok \d+ -) \S+\.[cm]?[jt]sx?(?: \([\d.]+ms\))?$"  # without a test: it passes there


def ran_none(code: int, output: str) -> bool:
    """True if a test command said that it ran no test, or by its exit code; `output` is without
    escape sequences. Tests that were all skipped prove nothing either."""
    if code == NO_TESTS:
        return True
    counts = [int(number) for number in re.findall(_OF_NODE, output, re.MULTILINE)]
    if counts:
        return code == 0 and sum(counts) <= len(re.findall(_FILE, output, re.MULTILINE))
    if any(re.search(pattern, output, re.MULTILINE) for pattern in _RAN):
        return False
    said = any(re.search(pattern, output, re.MULTILINE | re.IGNORECASE) for pattern in _NONE)
    return said or (code == 0 and re.search(_SKIPPED, output) is not None)
