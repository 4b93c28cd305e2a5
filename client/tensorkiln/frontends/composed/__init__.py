"""Operations without a graph node, composed with the builder, that several importers share."""
