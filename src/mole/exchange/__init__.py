"""What crosses the line between provider and developer: one file per chapter of docs/format.md."""
