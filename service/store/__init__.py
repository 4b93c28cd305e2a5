"""What the service keeps: blobs by their SHA-256, and small records that name them.

A blob is written before any record that names it, and both appear by rename only. Everything is verified when it is
read: what is damaged is removed, counted as missing, and made again.
"""
