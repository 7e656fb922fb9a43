"""State that outlives a process: the database, the parts that are stored in it, and its
directory.
"""
