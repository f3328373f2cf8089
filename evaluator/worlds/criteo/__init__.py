"""A twin of the Criteo attribution log: a file in the same format, drawn from fitted facts, whose truth is known."""
