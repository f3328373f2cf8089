"""What a replay can tell on a log like yours: twins of the log with known truth, replayed and played live."""
