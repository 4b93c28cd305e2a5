"""`kiln compile-all`: a folder of graphs for several targets, with a lock file and reports for a build machine."""
