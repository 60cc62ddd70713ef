"""The deliberate bugs still fit the sources, and the runner tells a bug that is seen from one that is not."""

import ast
from collections import Counter

import pytest

from tests.mutants import run
from tests.mutants.mutants import REQUIRED, ROOT, load

MUTANTS = load()


def source_of(mutant):
    return (ROOT / mutant.path).read_text("utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_still_applies(mutant):
    text = source_of(mutant)
    changed = mutant.applied_to(text)
    if not mutant.compiled:
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    assert changed != text
    assert mutant.origin in REQUIRED
    assert mutant.tests
    for test in mutant.tests:
        name, _, function = test.partition("::")
        assert f"def {function.partition('[')[0]}" in (ROOT / name).read_text("utf-8")


def test_no_two_mutants_have_one_name():
    assert Counter(mutant.id for mutant in MUTANTS).most_common(1)[0][1] == 1


def test_the_fifty_own_mutants_and_all_of_the_review_are_there():
    origins = Counter(mutant.origin for mutant in MUTANTS)
    assert origins["own"] >= 50
    assert origins["review"] >= 23


def test_a_mutant_whose_text_is_gone_or_ambiguous_is_refused():
    mutant = MUTANTS[0]
    for text in ("", mutant.old * 2):
        with pytest.raises(ValueError, match=mutant.id):
            mutant.applied_to(text)


def test_the_summary_asks_for_the_required_shares():
    one = next(mutant for mutant in MUTANTS if mutant.origin == "own")
    lines, enough = run.summary([(one, run.CAUGHT)] * 9 + [(one, run.SURVIVED)])
    assert enough
    assert "9 of 10" in lines[0]
    lines, enough = run.summary([(one, run.CAUGHT)] * 8 + [(one, run.BROKEN)] * 2)
    assert not enough
    assert one.what in lines[1]
