"""A source of many files, read a stretch of time each, by threads or workers at once, and written in parts."""
