"""Compiled building blocks of the policies and of the replay loop; they know NumPy and nothing above."""
