"""How graphs, programs and their parts show themselves: a line, a few lines, and a table in a notebook.

The records call these functions, which import none of them: what is shown is described by its fields alone.
"""
