"""Feature maps of kernels and graphs of nearest rows."""
