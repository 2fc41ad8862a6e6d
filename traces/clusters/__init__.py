"""Job logs of GPU clusters, as their owners published them."""
