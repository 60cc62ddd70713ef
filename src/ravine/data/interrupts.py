"""Signals that arrive during compiled code end a fit by the exception of their handler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_pass() -> Iterator[None]:
    """Raise what the handler of a signal raised, instead of a SystemError of compiled code.

    If a handler raises while a compiled function makes Python objects of its result, the interpreter sees a
    result with an exception set, and raises a SystemError caused by that exception.

    >>> with interrupts_pass():
    ...     raise SystemError("returned a result with an exception set") from SystemExit(3)
    Traceback (most recent call last):
    SystemExit: 3
    """
    try:
        yield
    except SystemError as error:
        cause = error.__cause__
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if cause is None or isinstance(cause, Exception):
            raise
        raise cause from None
