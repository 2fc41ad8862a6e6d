"""Where jobs ran: hops between their nodes, how stable these were, whom failures struck; and in another order."""
