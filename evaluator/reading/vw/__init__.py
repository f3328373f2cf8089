"""VowpalWabbit's logs of decisions, dsjson and text, as two tables: a row for a decision, and one for each action."""
