"""How long conversions take: delay distributions and their estimates from logs that stop looking."""
