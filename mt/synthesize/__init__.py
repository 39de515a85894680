"""Training text that a model makes: sources for monolingual text (back-translation), targets for a student (distillation)."""
