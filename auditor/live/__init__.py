"""Checks against a running engine: the only package that opens a connection."""
