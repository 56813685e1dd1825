"""How the attention calls of any model are seen and computed."""
