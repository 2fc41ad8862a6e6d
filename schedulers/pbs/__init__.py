"""PBS's scheduling rules: formulas, the fairshare tree, strict ordering."""
