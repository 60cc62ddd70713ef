"""The clusterers: one file each, over what they share."""
