"""`mt serve`: translations over HTTP, with requests collected into batches."""
