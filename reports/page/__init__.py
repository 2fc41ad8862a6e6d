"""Show one or more runs as a self-contained HTML page."""
