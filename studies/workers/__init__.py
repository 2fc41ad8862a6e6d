"""Who carries trials out: processes of this machine, or workers of a cluster; their number and order change nothing."""
