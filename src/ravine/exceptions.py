"""The exceptions and warnings of ravine."""

from __future__ import annotations

import os
import sys
import warnings
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


def warn_caller(message: Warning | str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of ravine that led here, so that a warning names the user's own line.

    Python 3.12 has `skip_file_prefixes` for this.
    """
    package, level = os.path.dirname(__file__), 1
    while (frame := sys._getframe(level)).f_back and frame.f_code.co_filename.startswith(package):
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)
