"""Sets of schedulable units in all their forms: values, text, what is free, indices of arrays, bits."""
