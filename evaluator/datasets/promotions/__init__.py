"""A shop's promotions: a log with eligible actions, refunds, costs, unsubscribes and segments, whose truth is known."""
