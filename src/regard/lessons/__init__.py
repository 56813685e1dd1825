"""Step-by-step explanations with real numbers."""
