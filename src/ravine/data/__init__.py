"""The gateway to the data: blocks of rows, and the sums over rows that algorithms ask for."""
