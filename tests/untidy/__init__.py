"""Untidy logs with known truth: traffic as it comes, a logger as it is, and the defects that a log has in the end.

`settings` says what is drawn, `traffic` draws it with its truth, `defects` spoil it, `writing` makes it a log, in
memory or through files. `truth` knows what policies earn on it, `live` plays them, `kinds` lists what can be wrong,
`verdict` holds what the product says against the truth, `tempting` computes what the wrong way gives.
"""
