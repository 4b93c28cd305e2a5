"""The store of the service: blobs by their SHA-256, and small records that name them.

A blob is written before any record that names it, and both appear by rename only. Everything is verified when it is
read: a damaged file is removed, counts as missing, and is made again.
"""
