"""What test runners say when a pattern matches no test, and when it matches some."""

import pytest

from ralph.loops.backlog.gates.ran_none import ran_none
from ralph.text.plain import clean

# The runner, its exit code, and what it prints; as seen here of pytest, unittest, cargo, node 20.
NONE = [
    ("pytest -q -k", 5, "\n1 deselected in 0.58s\n"),
    ("pytest says nothing", 5, ""),
    ("pytest, by make", 2, "3 deselected in 0.02s\nmake: *** [Makefile:2: test] Error 5\n"),
    ("pytest without files", 4, "\nno tests ran in 0.56s\nERROR: file or directory not found: x\n"),
    ("pytest, all skipped", 0, "1 skipped, 3 deselected in 0.02s\n"),
    ("unittest", 0, "\n------\nRan 0 tests in 0.000s\n\nOK\n"),
    ("unittest 3.12", 5, "\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n"),
    ("mocha", 0, "\n\n  0 passing (2ms)\n\n"),
    ("mocha --fail-zero", 1, "\n\n  0 passing (2ms)\n"),
    ("jest -t", 0, "Test Suites: 1 skipped, 0 of 1 total\nTests:       4 skipped, 4 total\n"),
    ("jest of a path", 1, "No tests found, exiting with code 1\nRun with `--passWithNoTests`\n"),
    ("vitest -t", 0, "\x1b[2m Test Files \x1b[22m 1 skipped (1)\n      Tests  2 skipped (2)\n"),
    ("vitest of a path", 1, "No test files found, exiting with code 1\n"),
    ("node 20", 0, "ok 1 - a # SKIP test name does not match pattern\n# pass 0\n# fail 0\n"),
    ("node 24", 0, "✔ two.test.js (61.52275ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0\nℹ skipped 0\n"),
    ("node without files", 0, "ℹ tests 0\nℹ pass 0\n"),
    ("bun", 1, 'error: regex "T-1" matched 0 tests. Searched 1 file (skipping 2 tests)\n'),
    ("bun 1.2", 0, " 0 pass\n 2 skip\n 0 fail\nRan 2 tests across 1 files. [8.00ms]\n"),
    ("deno", 0, "ok | 0 passed | 0 failed | 3 filtered out (1ms)\n"),
    ("go test -run", 0, "testing: warning: no tests to run\nok  \tx/y\t0.002s [no tests to run]\n"),
    ("go, several", 0, "ok  \tx\t(cached) [no tests to run]\n?   \tx/cmd\t[no test files]\n"),
    ("cargo", 0, "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 2 filtered out\n"),
    ("cargo, ignored", 0, "running 1 test\n\ntest result: ok. 0 passed; 0 failed; 1 ignored\n"),
    ("nextest", 4, "error: no tests to run\n"),
    ("rspec", 0, "All examples were filtered out\n\n0 examples, 0 failures\n"),
    ("minitest", 0, "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n"),
    ("mix", 0, "0 tests, 0 failures (12 excluded)\n"),
    ("phpunit", 0, "No tests executed!\n"),
    ("Maven", 1, "[ERROR] No tests matching pattern 'T-1' were executed!\n"),
    ("Gradle", 1, "> No tests found for given includes: [T-1](--tests filter)\n"),
    ("dotnet", 0, "No test matches the given testcase filter `T-1` in x.dll\n"),
    ("swift", 0, "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 seconds\n"),
    ("playwright", 1, "Error: No tests found\n"),
    ("ctest", 8, "No tests were found!!!\n"),
]  # fmt: skip
SOME = [
    ("pytest", 0, "1 passed, 3 deselected in 0.57s\n"),
    ("pytest fails", 1, "FAILED test_a.py::test_T_001\n1 failed, 3 deselected in 0.57s\n"),
    ("pytest cannot collect", 2, "ERROR test_b.py\n1 error in 0.10s\n"),
    ("unittest", 0, ".\n------\nRan 1 test in 0.000s\n\nOK\n"),
    ("mocha", 0, "\n  1 passing (2ms)\n  1 pending\n"),
    ("mocha fails", 1, "\n  0 passing (2ms)\n  1 failing\n"),
    ("mocha cannot load", 1, "Error: Cannot find module './price'\n"),
    ("jest", 0, "Test Suites: 1 passed, 1 of 3 total\nTests:       5 skipped, 1 passed\n"),
    ("jest cannot load", 1, "FAIL a.test.js\nTest Suites: 1 failed, 1 total\nTests: 0 total\n"),
    ("vitest", 0, " Test Files  1 passed | 1 skipped (2)\n      Tests  1 passed | 3 skipped (4)\n"),
    ("node 20", 0, "ok 1 - good T-001 test\n# pass 1\n# fail 0\n# skipped 2\n"),
    ("node 24", 0, "✔ good (0.9ms)\n✔ two.test.js (61.5ms)\nℹ tests 2\nℹ pass 2\nℹ fail 0\n"),
    ("node fails", 1, "✖ bad (0.9ms)\nℹ tests 1\nℹ pass 0\nℹ fail 1\n"),
    ("bun", 0, " 1 pass\n 1 filtered out\n 0 fail\nRan 1 test across 1 file. [61.00ms]\n"),
    ("go", 0, "ok  \tx\t0.002s [no tests to run]\nok  \tx/y\t0.003s\n"),
    ("go fails", 1, "--- FAIL: TestT001 (0.00s)\nFAIL\nFAIL\tx\t0.002s\n"),
    ("go cannot build", 1, "FAIL\tx [build failed]\nok  \ty\t0.002s [no tests to run]\n"),
    ("cargo", 0, "test result: ok. 0 passed; 0 failed\n\ntest result: ok. 1 passed; 0 failed\n"),
    ("cargo cannot build", 101, "error: could not compile `x` (lib test) due to 1 error\n"),
    ("rspec", 0, "1 example, 0 failures\n"),
    ("minitest", 0, "1 runs, 2 assertions, 0 failures, 0 errors, 0 skips\n"),
    ("phpunit", 0, "OK (1 test, 1 assertion)\n"),
    ("Maven", 0, "[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n"),
    ("dotnet", 0, "Passed!  - Failed:     0, Passed:     1, Skipped:     0, Total:     1\n"),
    ("nothing is said", 0, ""),
    ("a linter before it", 1, "✖ 3 problems (3 errors, 0 warnings)\n"),
    ("it is not there", 127, "sh: 1: npx: not found\n"),
    ("it hangs", 124, ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "output"), [c[1:] for c in NONE], ids=[c[0] for c in NONE])
def test_a_runner_that_found_no_test_says_so(code: int, output: str) -> None:
    assert ran_none(code, clean(output))


@pytest.mark.parametrize(("code", "output"), [c[1:] for c in SOME], ids=[c[0] for c in SOME])
def test_one_that_ran_some_or_could_not_is_believed_too(code: int, output: str) -> None:
    assert not ran_none(code, clean(output))
