"""From lines to translations: `engine` puts the model, the constraints and a search together; a line that is too long goes in parts."""
