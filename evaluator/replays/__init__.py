"""The whole way from a log to a result: options, plan, execution, result."""
