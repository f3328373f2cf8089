"""A byte fuzzer over what the package reads and others write: sources, specs, folders, fits, policies, studies.

Every case is a number: `python -m tests.fuzz --target policy --case 17` runs one again, `--minutes 10` runs new ones.
A case damages files that our own writers wrote and reads them; `oracle` says what may come of it.

The mutators are our own, because what fails lies behind formats: bytes that a coverage-guided library would have to
find its way through are rewritten here as JSON, TOML, tables and archives; and most parsers (Arrow, Polars) are
compiled without the instruments that such a library is guided by. Nothing reads the truth that lies beside a twin, and
a Python file of a policy is code of whoever names it: neither is damaged.
"""
