"""Methods that the papers compare with, in the plainest form that runs on their data: one file each."""

from benchmarks.baselines.discriminative_kmeans import discriminative_kmeans
from benchmarks.baselines.divisive import divide
from benchmarks.baselines.drsc import drsc
from benchmarks.baselines.gmmc import gmmc
from benchmarks.baselines.iterative_svr import IterSVR
from benchmarks.baselines.kernel_kmeans import kernel_kmeans
from benchmarks.baselines.lapsvm import LapSVM
from benchmarks.baselines.lda_km import lda_km
from benchmarks.baselines.lgmmc import lgmmc
from benchmarks.baselines.mmc import mmc
from benchmarks.baselines.normalized_cut import normalized_cut
from benchmarks.baselines.pddp import depddp, pddp
from benchmarks.baselines.semi_supervised import label_spreading, self_training, supervised_svm
from benchmarks.baselines.spectral import self_tuning_spectral, spectral
from benchmarks.baselines.tsvm import TSVM

__all__ = [
    "TSVM",
    "IterSVR",
    "LapSVM",
    "depddp",
    "discriminative_kmeans",
    "divide",
    "drsc",
    "gmmc",
    "kernel_kmeans",
    "label_spreading",
    "lda_km",
    "lgmmc",
    "mmc",
    "normalized_cut",
    "pddp",
    "self_training",
    "self_tuning_spectral",
    "spectral",
    "supervised_svm",
]
