"""Pictures of a study: curves, bars, boxes, distributions, differences by size."""
