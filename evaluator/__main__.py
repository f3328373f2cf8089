"""``python -m evaluator`` is ``evaluate``."""

from evaluator.cli.app import main

if __name__ == "__main__":
    main()
