"""The estimators, with the interface of scikit-learn: one file each, over shared bases."""
