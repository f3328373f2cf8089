"""A source of many files, read a stretch of time each by threads at once, and written in parts."""
