"""The exceptions and warnings of ravine."""

from __future__ import annotations

from collections.abc import Sequence


class RavineError(Exception):
    """Base class of all exceptions of ravine."""


class InvalidInputError(RavineError, ValueError):
    """The data or a parameter cannot be used; the message says what to do about it."""


class InvalidModelError(RavineError, ValueError):
    """A file or a text is not a valid ravine model."""


class DiscreteColumnWarning(UserWarning):
    """A split separates the values of one discrete column, whose gap is not evidence for clusters.

    `reason` says how many splits do; `columns` are the numbers of these columns, whose `names` the message
    has beside the advice.
    """

    def __init__(self, reason: str, columns: Sequence[int], names: str) -> None:
        super().__init__(reason, columns, names)  # all of them, so that it can be pickled
        self.reason, self.columns, self.names = reason, tuple(columns), names

    def __str__(self) -> str:
        advice = 'leave such columns out, or use n_clusters="auto", which ignores these gaps'
        return f"{self.reason} ({self.names}): {advice}"


class InterruptedWarning(UserWarning):
    """A fit was interrupted from the keyboard: the tree has the splits found so far."""


class OutlierWarning(UserWarning):
    """Some rows are far from all others, and were left out of the searches."""


class OneClusterWarning(UserWarning):
    """No significant split was found; `reason` says why, and the message also says what to try."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason, advice)  # both, so that it can be pickled
        self.reason, self.advice = reason, advice

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}"
