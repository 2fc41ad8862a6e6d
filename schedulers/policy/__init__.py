"""The interfaces of policies, and what a policy sees and can do."""
