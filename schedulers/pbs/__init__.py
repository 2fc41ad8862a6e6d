"""PBS's scheduling: formulas, the fairshare tree, strict ordering."""
