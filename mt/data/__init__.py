"""From pairs to batches: the store keeps them, the plan orders them, augmentation varies them, the loader batches them."""
