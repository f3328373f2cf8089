"""Outputs: files and folders are written whole or not at all, and replace only what this package wrote."""
