"""What a job's Maui priority is made of."""
