"""Readings → pictures: the fleet and each agent as pages, served live or written as one file.

`look` is what is read of an agent at one moment, `course` how its score went; from them the other modules make what a page
shows, in plain values, and `rendering` writes them down with the templates. Names and numbers only, never content.
"""
