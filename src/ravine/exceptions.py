"""The exceptions and warnings of ravine."""


class RavineError(Exception):
    """Base of all exceptions of ravine."""


class InvalidInputError(RavineError, ValueError):
    """The data or a parameter cannot be used; the message says what to do about it."""


class InvalidModelError(RavineError, ValueError):
    """A file or a text is not a ravine model, or is incomplete."""


class DiscreteColumnWarning(UserWarning):
    """A split runs between the values of one discrete column: a gap by definition, not a discovery."""


class InterruptedWarning(UserWarning):
    """A fit was interrupted from the keyboard: the tree has the splits found so far."""


class OutlierWarning(UserWarning):
    """Some rows are far from everything else, and the searches left them out."""


class OneClusterWarning(UserWarning):
    """No significant split was found: `reason` says why, and the message also what to try."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason = reason
