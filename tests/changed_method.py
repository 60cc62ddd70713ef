"""Estimators whose searches differ in what is no parameter: starts, tolerances, micro-clusters."""

from dataclasses import replace


def with_method(model, change=None, **fields):
    """The same estimator with other fields of its method, or what `change(method, rows)` makes of it."""
    make = type(model)

    def method(self, rows=None):
        found = make._method(self, rows)
        return replace(found, **fields) if change is None else change(found, rows)

    return type(make.__name__, (make,), {"_method": method})(**model.get_params())


def with_order(model, split_order):
    """The same estimator with another order in which leaves are split."""
    make = type(model)
    return type(make.__name__, (make,), {"_split_order": split_order})(**model.get_params())
