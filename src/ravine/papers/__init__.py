"""The methods as their papers describe them, to repeat the papers' tables; docs/papers.md says what differs.

They are ordinary estimators, with the papers' settings as defaults. Nothing else in ravine uses them.
"""

from ravine.papers.connectivity import LMSC, SCP2, SCnP2
from ravine.papers.density import KMDH, MDP2, SKMDH, SemiSupervisedMDP2
from ravine.papers.sides import CPMMC, MSPC

__all__ = ["CPMMC", "KMDH", "LMSC", "MDP2", "MSPC", "SCP2", "SKMDH", "SCnP2", "SemiSupervisedMDP2"]
