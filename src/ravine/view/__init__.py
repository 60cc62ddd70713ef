"""What a person sees of a tree: explanations, pictures, a report."""
