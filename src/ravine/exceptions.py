"""The exceptions and warnings that ravine raises on purpose."""


class RavineError(Exception):
    """Base of every exception that ravine raises on purpose."""


class InvalidInputError(RavineError, ValueError):
    """The data or a parameter cannot be used; the message says what to do about it."""


class InvalidModelError(RavineError, ValueError):
    """A file or a text is not a ravine model, or not a whole one."""


class InterruptedWarning(UserWarning):
    """A fit was interrupted from the keyboard: the tree is what was found until then."""
