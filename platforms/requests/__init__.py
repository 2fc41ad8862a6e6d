"""What a job asks of its nodes: which will do, how many units on each, and units that are so."""
