"""Fewer cases than a full product, where the third value is independent of the others in the code."""


def by_turns(rows, columns, values):
    """Every row with every column; the values take turns: each row and each column meets all of them."""
    return [
        (row, column, values[(i + j) % len(values)])
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
