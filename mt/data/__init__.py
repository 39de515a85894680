"""From files to batches: readers yield pairs, filters drop some, the store keeps them, the plan orders them, batches go to the model."""
