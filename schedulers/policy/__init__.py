"""What a policy is, what it sees and does, and the runtime that serves it."""
