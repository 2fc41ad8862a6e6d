"""Where units and nodes are: the table of nodes, topologies, orders, partitions."""
