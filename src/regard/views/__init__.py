"""What people see: the terminal, figures, pages, the map, reports and explanations."""
