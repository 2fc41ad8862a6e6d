"""Where units and nodes are: the table of nodes, how they are numbered, and what a placement sees of them."""
