"""What a run comes to, for a reader: its page, and the runs of a folder side by side."""
