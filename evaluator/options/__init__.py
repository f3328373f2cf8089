"""Options: how one is declared, which several functions take, and how the functions show theirs."""
