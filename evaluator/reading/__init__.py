"""Reading: a source gives chunks, their cells become typed columns, rules look at rows, events join displays, a log."""
