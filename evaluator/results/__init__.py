"""What every result can do: become a table, become JSON, show itself in a notebook."""
