"""A made-up shop: small tables of displays and sales such as a company has, whose truth is known."""
