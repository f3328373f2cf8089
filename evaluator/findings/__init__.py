"""What a result says besides its numbers: warnings, assumptions and notes, each with a code of the catalogue."""
