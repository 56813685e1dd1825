"""What people see: the terminal and figures."""
