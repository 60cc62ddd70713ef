"""The exceptions and warnings of ravine."""


class RavineError(Exception):
    """Base of all exceptions of ravine."""


class InvalidInputError(RavineError, ValueError):
    """The data or a parameter cannot be used; the message says what to do about it."""


class InvalidModelError(RavineError, ValueError):
    """A file or a text is not a ravine model, or is incomplete."""


class InterruptedWarning(UserWarning):
    """A fit was interrupted from the keyboard: the tree has the splits found so far."""
