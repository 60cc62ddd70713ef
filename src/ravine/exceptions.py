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
        advice = 'leave such columns out, or use n_clusters="auto", which ignores these gaps'
        super().__init__(f"{reason} ({names}): {advice}")
        self.reason, self.columns = reason, tuple(columns)


class InterruptedWarning(UserWarning):
    """A fit was interrupted from the keyboard: the tree has the splits found so far."""


class OutlierWarning(UserWarning):
    """Some rows are far from all others, and were left out of the searches."""


class OneClusterWarning(UserWarning):
    """No significant split was found; `reason` says why, and the message also says what to try."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason = reason
