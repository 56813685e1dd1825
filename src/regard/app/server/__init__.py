"""The web app: a text in, a recording out, its views and its map; parse, call, render, no maths."""
