"""Looking at workloads and choosing from them."""
