"""The command line, as a user runs it: in a process of its own."""

import subprocess
import sys

import ravine


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "ravine.cli", *arguments], capture_output=True, text=True)


def test_demo_says_what_it_found_in_plain_words():
    done = run("demo")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("1797 handwritten digits", "cluster 9", "purity", "V-measure", "What to try next"):
        assert word in done.stdout


def test_version():
    assert run("--version").stdout.strip() == f"ravine {ravine.__version__}"


def test_a_usage_error_is_exit_code_2():
    done = run("no-such-command")
    assert done.returncode == 2
    assert "no-such-command" in done.stderr
