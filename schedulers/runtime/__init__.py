"""Who asks the policy, when, and turns what it decides into replies."""
