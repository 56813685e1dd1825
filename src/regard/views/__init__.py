"""What people see: the terminal so far."""
