"""What translations are to obey: asked for in text (`control`), spelled in ids (`orders`), kept by steps around a step (`wrappers`)."""
