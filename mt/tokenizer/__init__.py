"""Sub-word tokenizer: `fit` trains a sentencepiece model, `spm` turns text into ids and back, `segmentation` cuts text at random."""
