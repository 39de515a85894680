"""The encoder-decoder Transformer: attention, layers, cache and loss."""
