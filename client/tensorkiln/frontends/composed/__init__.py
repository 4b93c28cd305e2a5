"""What several importers need of operations that graphs have no nodes of: composed with the builder, for any format."""
