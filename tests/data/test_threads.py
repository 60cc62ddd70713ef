"""The threads of a fit: order, errors, interrupts, and threads that are idle."""

import pickle
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ravine.data.threads import Threads, one_blas_thread

SECONDS = 10.0  # longest wait for another thread


def test_results_have_the_order_of_the_items_and_other_threads_help():
    threads, both = Threads(2), threading.Barrier(2, timeout=SECONDS)
    names = threads.map(lambda k: (k, both.wait() >= 0, threading.current_thread().name), [0, 1])
    assert [k for k, *_ in names] == [0, 1]
    assert len({name for *_, name in names}) == 2


@pytest.mark.parametrize("n", [1, 2])
def test_the_error_is_that_of_the_first_item_that_fails(n):
    later = threading.Event()

    def work(k):
        if k == 0 and n > 1:
            assert later.wait(SECONDS)  # until the next item has failed in the other thread
        later.set()
        raise ValueError(k)

    with pytest.raises(ValueError, match=r"^0$"):
        Threads(n).map(work, range(40))


def test_after_an_error_no_more_items_are_taken():
    taken = []

    def work(k):
        taken.append(k)
        raise ValueError(k)

    with pytest.raises(ValueError, match="0"):
        Threads(3).map(work, range(100))
    assert len(taken) <= 3


def test_an_interrupt_ends_the_other_threads():
    taken, main = [], threading.current_thread()

    def work(k):
        taken.append(k)
        if threading.current_thread() is main:
            raise KeyboardInterrupt

    threads = Threads(2)
    with pytest.raises(KeyboardInterrupt):
        threads.map(work, range(10_000_000))
    n = len(taken)
    assert threads.map(lambda k: k, [1, 2]) == [1, 2]
    assert len(taken) == n


def test_work_begins_only_in_an_idle_thread():
    threads, goes_on = Threads(2), threading.Event()
    first = threads.begin(lambda: goes_on.wait(SECONDS))
    assert first is not None
    assert threads.begin(lambda: None) is None
    goes_on.set()
    assert first.result(SECONDS)
    assert Threads(1).begin(lambda: None) is None


def test_work_in_another_thread_may_share_passes_of_its_own():
    threads = Threads(3)
    part = threads.begin(lambda: threads.map(lambda k: 2 * k, range(50)))
    assert threads.map(lambda k: k, range(50)) == list(range(50))
    assert part.result() == [2 * k for k in range(50)]


def test_threads_travel_as_a_number():
    threads = Threads(3)
    threads.map(abs, [1, 2])
    assert pickle.loads(pickle.dumps(threads)).n == 3


def test_a_thread_whose_work_failed_is_idle_again():
    threads = Threads(2)

    def fail():
        raise ValueError("once")

    with pytest.raises(ValueError, match="once"):
        threads.begin(fail).result()
    assert threads.begin(lambda: 1).result() == 1


def test_blas_has_its_threads_back_after_limits_inside_of_each_other():
    def counts():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = counts()
        with one_blas_thread(), one_blas_thread():
            assert set(counts()) == {1}
        assert counts() == before
