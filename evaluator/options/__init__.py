"""Options: their declarations, those that several functions share, and how functions show them."""
