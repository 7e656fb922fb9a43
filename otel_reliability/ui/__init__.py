"""The view of agents → web pages: all agents and each of them, served live or written as one file.

`live` reads a running engine into the view of `report`, `agent_list` is the table of agents,
`flow`, `charts` and `runs` compute what is drawn, and `rendering` renders the templates. Pages show
names and numbers only, never content.
"""
