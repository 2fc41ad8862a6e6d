"""Sets of schedulable units: values, text, free units, array indices, bit masks."""
