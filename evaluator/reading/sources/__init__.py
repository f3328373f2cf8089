"""Where the tables of a spec lie: each kind of place gives parts of tables that the reader takes alike."""
