"""The command line: parse, call, render; no maths."""
