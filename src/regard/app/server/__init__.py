"""The web app: reads a text, records it, and serves its views and its map."""
