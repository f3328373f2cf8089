"""What commands say, kept as files: the JSON, terminal text and page of some sixty commands, and a test that compares.

A change of the code that moves a line of `snapshots` says why in its commit. ``python -m tests.frozen --write`` writes
them anew. Their logs are made here (`logs`), of plain uniform draws, or are bundled: no other part of the tests
can move them.
"""
