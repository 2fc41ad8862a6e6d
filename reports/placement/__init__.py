"""Where jobs ran: hops, stable nodes, failures; and under another node order."""
