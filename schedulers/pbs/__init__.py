"""Scheduling as PBS does it: formulas, the fairshare tree, strict ordering."""
